// SPDX-License-Identifier: Apache-2.0

package writefile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// A rename waits for a short time while another program has the file open.
func TestReplaceOfOpenFile(t *testing.T) {
	defer func() { renameFile, isInUse = os.Rename, isSharing }()
	inUse, denied := errors.New("in use"), errors.New("denied")
	isInUse = func(err error) bool { return errors.Is(err, inUse) }
	for _, test := range []struct {
		open    time.Duration // how long another program has the file open
		fail    error
		options *Options
		mode    os.FileMode // of the file that is there; 0 if there is none
		want    error
		took    time.Duration // at most
	}{
		{0, nil, nil, 0, nil, 0},
		{time.Second, inUse, nil, 0, nil, moveTimeout},
		{time.Second, inUse, nil, 0o600, nil, moveTimeout},
		{10 * time.Millisecond, inUse, &Options{Wait: 100 * time.Millisecond}, 0o600, nil, 100 * time.Millisecond},
		{time.Second, inUse, &Options{Wait: 100 * time.Millisecond}, 0o600, inUse, 100 * time.Millisecond},
		{time.Hour, inUse, nil, 0o600, inUse, moveTimeout},
		{time.Hour, inUse, nil, 0o400, inUse, 0},
		{time.Hour, denied, nil, 0, denied, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			renameFile = func(from, to string) error {
				if time.Since(began) < test.open {
					return test.fail
				}
				return os.Rename(from, to)
			}
			path := filepath.Join(t.TempDir(), "file")
			if test.mode != 0 {
				if err := os.WriteFile(path, nil, test.mode); err != nil {
					t.Fatal(err)
				}
			}
			_, err := Replace(path, test.options, func(file *os.File) error { _, err := file.WriteString("text"); return err })
			if took := time.Since(began); !errors.Is(err, test.want) || took > test.took {
				t.Errorf("open for %v: %v after %v", test.open, err, took)
			}
			if names, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); (len(names) == 1) != (test.want == nil || test.mode != 0) {
				t.Errorf("open for %v: left are %q", test.open, names)
			}
		})
	}
}
