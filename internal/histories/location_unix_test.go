// SPDX-License-Identifier: Apache-2.0

//go:build unix

package histories

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// The scope stays the same when a link to the configuration leads to another version of it, as in a
// ConfigMap of Kubernetes. Without links, it is a digest of the path.
func TestScope(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	in := func(names ...string) string { return filepath.Join(append([]string{folder}, names...)...) }
	for _, version := range []string{"..1", "..2"} {
		if err := errors.Join(os.Mkdir(in(version), 0o700), os.WriteFile(in(version, "consort.toml"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	data, linked := in("..data"), in("consort.toml")
	if err := errors.Join(os.Symlink("..1", data), os.Symlink(filepath.Join("..data", "consort.toml"), linked), os.WriteFile(in("plain.toml"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	scope := func(file string) string {
		scope, err := (&Location{ConfigFile: file, own: true}).Scope()
		if err != nil {
			t.Fatal(err)
		}
		return scope
	}
	before := scope(linked)
	if err := errors.Join(os.Remove(data), os.Symlink("..2", data)); err != nil {
		t.Fatal(err)
	}
	if after := scope(linked); after != before || after == scope(in("plain.toml")) {
		t.Errorf("the scope was %s, and is %s", before, after)
	}
	if sum := sha256.Sum256([]byte(in("plain.toml"))); scope(in("plain.toml")) != hex.EncodeToString(sum[:6])+"-" {
		t.Error("the scope of a file without links has changed")
	}
}
