package console

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
)

// static has the files that pages load. Those in folders are other projects', as they released
// them, with their licences; static/SHA256SUMS pins them, and a test checks it. What no page loads
// is not in the binary.
//
//go:embed static/*.css static/*.js static/*.svg static/htmx
var static embed.FS

// asset is a file that pages load.
type asset struct {
	content []byte
	kind    string // of its content
	version string // changes with its content
}

// kinds are the kinds of files that browsers get. There are no others.
var kinds = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// assets are the files by their path below static.
var assets = readAssets()

func readAssets() map[string]*asset {
	all := map[string]*asset{}
	files, err := fs.Sub(static, "static")
	if err == nil {
		err = fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || kinds[path.Ext(name)] == "" {
				return err
			}
			content, err := fs.ReadFile(files, name)
			sum := sha256.Sum256(content)
			all[name] = &asset{content, kinds[path.Ext(name)], hex.EncodeToString(sum[:6])}
			return err
		})
	}
	if err != nil {
		panic(err) // the files are in the binary
	}
	return all
}

// assetPath returns the address of a file, below the console's. It changes with the file, so that
// browsers may keep the file for ever.
func assetPath(name string) string { return "/static/" + name + "?v=" + assets[name].version }

// serveAsset answers with a file. It has nothing secret, so anybody gets it.
func serveAsset(w http.ResponseWriter, r *http.Request) {
	a := assets[r.PathValue("file")]
	if a == nil {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("ETag", `"`+a.version+`"`)
	h.Set("Cache-Control", "no-cache")
	if r.URL.Query().Get("v") == a.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if r.Header.Get("If-None-Match") == h.Get("ETag") {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(a.content)
}
