// SPDX-License-Identifier: Apache-2.0

package fileurl_test

import (
	"path/filepath"
	"testing"

	"github.com/consort-go/consort/internal/fileurl"
)

func TestOf(t *testing.T) {
	for path, want := range map[string]string{"C:/a b/x.txt": "file:///C:/a%20b/x.txt", "/home/ada/x": "file:///home/ada/x", "//server/share/x": "file:////server/share/x"} {
		if got := fileurl.Of(path); got != want {
			t.Errorf("the URL of %s is %s, want %s", path, got, want)
		}
	}
}

func TestPath(t *testing.T) {
	path, err := filepath.Abs(filepath.Join("a b", "x.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]string{
		fileurl.Of(path): path, "file://localhost/x": filepath.FromSlash("/x"), "file://other/x": "", "https://other/x": "", "%": "", "file:///%": "",
	} {
		if got := fileurl.Path(uri); got != want {
			t.Errorf("the path of %s is %s, want %s", uri, got, want)
		}
	}
}
