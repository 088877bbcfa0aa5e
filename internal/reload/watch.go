// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Programs that write a file cause several events: at the end of a burst there is quiet.
const (
	quiet   = 200 * time.Millisecond
	longest = 2 * time.Second // after the first event of a burst
)

// Watcher reports changes of files. It sees a file that is written in place, that is
// replaced by another, whose mode changes, which can make it readable, and that is reached through a symbolic link that changes, as in
// a ConfigMap of Kubernetes.
type Watcher struct {
	events *fsnotify.Watcher
	names  map[string]bool // the files, and the links on the way to them
	failed func(error)
}

// Watch returns a watcher of no files; [Watcher.Set] sets them. failed is called if
// something cannot be watched.
func Watch(failed func(error)) (*Watcher, error) {
	events, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	return &Watcher{events: events, failed: failed}, nil
}

// Set sets the files to watch, which need not exist. Call it again after each change: the
// links may lead elsewhere. It must not be called while Next runs.
func (w *Watcher) Set(paths []string) {
	w.names = map[string]bool{}
	folders := map[string]bool{}
	for _, path := range paths {
		for _, name := range links(path) {
			w.names[name], folders[filepath.Dir(name)] = true, true
		}
	}
	for _, folder := range w.events.WatchList() {
		if !folders[folder] {
			_ = w.events.Remove(folder) // fails if the folder is gone
		}
	}
	for folder := range folders {
		// Adding a folder again succeeds, and is needed if another one has its name now.
		if err := w.events.Add(folder); err != nil {
			w.failed(err)
		}
	}
}

// Next waits until one of the files may have changed, and then until no more changes
// follow. It returns false when ctx has ended, or the watcher is closed.
func (w *Watcher) Next(ctx context.Context) bool {
	var settled <-chan time.Time
	var first time.Time
	for {
		select {
		case <-ctx.Done():
			return false
		case <-settled:
			return true
		case err, open := <-w.events.Errors:
			if !open {
				return false
			}
			w.failed(err)
			settled = time.After(quiet) // events may be lost
		case event, open := <-w.events.Events:
			switch {
			case !open:
				return false
			case !w.names[event.Name]:
				continue
			case first.IsZero():
				first = time.Now()
			}
			settled = time.After(max(0, min(quiet, longest-time.Since(first))))
		}
	}
}

// Close ends the watcher.
func (w *Watcher) Close() error { return w.events.Close() }

// maxLinks bounds the symbolic links on the way to a file, as operating systems do.
const maxLinks = 40

// links returns the names of the symbolic links on the way to a file, and of the file.
func links(path string) []string {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil
	}
	var names []string
	volume := filepath.VolumeName(path)
	done := volume + string(filepath.Separator)
	rest := strings.TrimPrefix(path[len(volume):], string(filepath.Separator))
	for rest != "" && len(names) < maxLinks {
		part, after, more := strings.Cut(rest, string(filepath.Separator))
		name := filepath.Join(done, part)
		info, err := os.Lstat(name)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			names = append(names, name)
			target, err := os.Readlink(name)
			if err != nil {
				return names
			}
			if !filepath.IsAbs(target) {
				target = filepath.Join(done, target)
			}
			target = filepath.Join(target, after)
			volume = filepath.VolumeName(target)
			done = volume + string(filepath.Separator)
			rest = strings.TrimPrefix(target[len(volume):], string(filepath.Separator))
			continue
		}
		if !more {
			return append(names, name)
		}
		done, rest = name, after
	}
	return names
}
