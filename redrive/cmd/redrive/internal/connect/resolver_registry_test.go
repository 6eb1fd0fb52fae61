package connect

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/sidingkafka/siding/serve/payload"
)

func TestResolver_FindsTheRegistry(t *testing.T) {
	t.Parallel()
	file := write(t, filepath.Join(t.TempDir(), "secret"), hunter+"\n")
	profile := "profile: a\nprofiles:\n  a:\n    brokers: b\n    registry: https://registry\n    registry-ca: ca.pem\n"
	for _, c := range []struct {
		world world
		want  payload.Registry // files of the profile by their last part
		warns string
	}{
		{world{args: []string{"--brokers", "b"}}, payload.Registry{}, ""},
		{world{args: []string{"--brokers", "b", "--registry", "http://r"}}, payload.Registry{URL: "http://r"}, ""},
		{world{args: []string{"--brokers", "b", "--registry", "http://r", "--registry-user", "u", "--registry-password-file", file}}, payload.Registry{URL: "http://r", Username: "u", PasswordFile: "secret"}, "unencrypted: give an https:// URL"},
		{world{config: profile + "    registry-token-env: TOKEN\n", env: map[string]string{"TOKEN": hunter}}, payload.Registry{URL: "https://registry", CAFile: "ca.pem", Token: hunter}, ""},
		{world{config: profile, env: map[string]string{"SIDING_REGISTRY_USER": "u", "SIDING_REGISTRY_PASSWORD": hunter}}, payload.Registry{URL: "https://registry", CAFile: "ca.pem", Username: "u", Password: hunter}, ""},
	} {
		got, err := c.world.resolve(t)
		if err != nil {
			t.Errorf("%+v: %v", c.world, err)
			continue
		}
		for _, f := range []*string{&got.Registry.CAFile, &got.Registry.PasswordFile} {
			if *f != "" {
				*f = filepath.Base(*f)
			}
		}
		if warns := strings.Join(got.Warnings, " "); got.Registry != c.want || !strings.Contains(warns, c.warns) || c.warns == "" && warns != "" {
			t.Errorf("%+v: %+v and %q, want %+v and %q", c.world, got.Registry, warns, c.want, c.warns)
		}
	}
}

func TestResolver_RefusesAWrongRegistry(t *testing.T) {
	t.Parallel()
	profile := func(lines string) world {
		return world{config: "profile: a\nprofiles:\n  a:\n    brokers: b\n" + lines}
	}
	for _, c := range []struct {
		world world
		want  string
	}{
		{world{args: []string{"--brokers", "b", "--registry", "http://u:" + hunter + "@r"}}, "--registry: the URL must not have a user or a password"},
		{world{args: []string{"--brokers", "b", "--registry-user", "u"}}, "--registry: the URL is missing"},
		{world{args: []string{"--brokers", "b", "--registry", "http://r", "--registry-token-file", "/none"}}, "--registry-token-file: open /none"},
		{profile("    registry: ftp://r"), "registry of profile a: the URL needs the form"},
		{profile("    registry-token: " + hunter), "registry-token: a secret has no place in this file; name a file by registry-token-file, or a variable by registry-token-env"},
		{profile("    registry: https://r\n    registry-token-env: " + hunter), "registry-token-env of profile a: the variable that it names is not set"},
		{profile("    registry: https://r\n    registry-user: u\n    registry-password-file: " + hunter), "registry-password-file of profile a: read the file that it names"},
	} {
		if _, err := c.world.resolve(t); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hunter") {
			t.Errorf("error %v, want one that says %q", err, c.want)
		}
	}
}
