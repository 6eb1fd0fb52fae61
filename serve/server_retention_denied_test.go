package serve_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/sidingkafka/siding/serve"
)

// archives returns the files of a folder.
func archives(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// The server may not delete, or not write to the ledger. Each try of the retention wrote an archive
// of letters that stay.
func TestRetention_DeniedTriesLeaveNoArchives(t *testing.T) {
	t.Parallel()
	columns := serverRights(t)
	all := slices.Concat(columns[:]...)
	for name, is := range map[string]func(kfake.ACL) bool{
		"delete": func(r kfake.ACL) bool { return r.Operation == kmsg.ACLOperationDelete && r.Name == "orders.dlq" },
		"write":  func(r kfake.ACL) bool { return r.Operation == kmsg.ACLOperationWrite && r.Name == "orders.dlq.ledger" },
	} {
		lacks := all[slices.IndexFunc(all, is)]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cfg := serve.Config{Topics: []serve.Topic{{Match: "*", Alerts: serve.Thresholds{WarnOpen: 1}, Retention: &serve.Retention{MaxAge: 10 * time.Minute, Open: true, Every: time.Minute, Archive: dir}}}}
			guardAs(t, cfg, all, func(is *guarded) {
				is.watches()
				is.revoke(lacks)
				time.Sleep(15 * time.Minute) // five tries
				_, held := is.left()
				left := archives(t, dir)
				if held != 4 || len(left) > 0 {
					t.Errorf("%d letters stay, want 4, and have %d archives, want none", held, len(left))
				}
				is.grant(lacks)
				time.Sleep(10 * time.Minute)
				_, held = is.left()
				if now := archives(t, dir); held != 0 || len(now)-len(left) != 1 {
					t.Errorf("%d letters stay, want none, and there are %d archives, and %d before", held, len(now), len(left))
				}
			})
		})
	}
}
