// SPDX-License-Identifier: Apache-2.0

package reload

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/consort-go/consort/internal/jsonc"
	"github.com/pelletier/go-toml/v2"
)

// Files are the contents of a configuration file and of the files that it imports, at one
// moment.
type Files struct {
	path  string            // of the configuration
	load  Load              // reads them
	texts map[string]string // by path; a file that cannot be read has none
	errs  map[string]error  // by path, of the files that cannot be read
	keys  map[string]string // the values as JSON, by the path of their keys; nil if the file cannot be read

	special string // see Special
}

// Load loads a configuration, and reads its files with read, which may be called from one
// goroutine at a time. So it alone knows which files are imported.
type Load func(read func(path string) ([]byte, error))

// Read reads the file at path, if it is not empty, and the files that load reads; load may be called again by
// the methods. Files that cannot be read, or that are not valid, count as empty: whoever
// loads the configuration reports them.
func Read(path string, load Load) *Files {
	f := &Files{path: path, load: load, texts: map[string]string{}, errs: map[string]error{}}
	if path == "" { // the settings of the command line can import files
		f.keys = map[string]string{}
	} else {
		_, _ = f.read(path) // the loader may not come to that
	}
	load(f.read)
	if tree := parsed(f.texts[path]); tree != nil {
		f.keys = map[string]string{}
		flatten("", tree, f.keys)
	}
	for name, text := range f.texts {
		if name == path || f.keys == nil {
			continue
		}
		tree := parsed(text)
		for _, table := range []string{"mcpServers", "servers"} {
			if servers, ok := tree[table]; ok {
				flatten("mcp", servers, f.keys)
				break
			}
		}
	}
	return f
}

const (
	pause      = 250 * time.Millisecond // settled files have stayed the same so long
	settleTime = 10 * time.Second       // Settled waits so long
)

// Again reads the files of the configuration again.
func (f *Files) Again() *Files { return Read(f.path, f.load) }

// Settled is like [Files.Again], and waits until the files no longer change: a file that is
// being written could pass for a whole one. It waits at most 10 seconds, and not after ctx
// ends.
func (f *Files) Settled(ctx context.Context) *Files {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	files := f.Again()
	for {
		select {
		case <-ctx.Done():
			return files
		case <-time.After(pause):
		}
		again := f.Again()
		if again.Equal(files) {
			return files
		}
		files = again
	}
}

// Text returns the contents of a file, or the error of reading it. It does not read again.
func (f *Files) Text(path string) ([]byte, error) {
	text, ok := f.texts[path]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: path, Err: fs.ErrNotExist}
	}
	return []byte(text), f.errs[path]
}

// read reads a file into f, unless it is there.
func (f *Files) read(path string) ([]byte, error) {
	if _, ok := f.texts[path]; !ok {
		text, err := readRegular(path)
		if errors.Is(err, errSpecial) {
			f.special = cmp.Or(f.special, path)
		}
		f.texts[path], f.errs[path] = string(text), err
	}
	return f.Text(path)
}

// errSpecial refuses a file that could not be read again.
var errSpecial = errors.New("not a regular file")

// maxFile is how many bytes of a file are used. Package config refuses a larger file.
const maxFile = 1 << 20

// readRegular reads a regular file, up to maxFile+1 bytes, so that the caller can tell that it is
// too large. It does not wait for the writer of a pipe, also if the pipe takes the place of the
// file meanwhile.
func readRegular(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // it may not even be opened
		return nil, &fs.PathError{Op: "open", Path: path, Err: errSpecial}
	}
	file, err := os.OpenFile(path, os.O_RDONLY|nonblocking, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errSpecial}
	}
	return io.ReadAll(io.LimitReader(file, maxFile+1))
}

// withoutMark removes the byte order mark that some editors write at the start.
func withoutMark(text string) string { return strings.TrimPrefix(text, "\ufeff") }

// parsed returns the values of a text in TOML or JSON; nil if it is not valid or too large.
func parsed(text string) (tree map[string]any) {
	if len(text) > maxFile {
		return nil
	}
	text = withoutMark(text)
	var err error
	if plain := jsonc.Plain([]byte(text)); bytes.HasPrefix(bytes.TrimSpace(plain), []byte("{")) {
		err = json.Unmarshal(plain, &tree)
	} else {
		err = toml.Unmarshal([]byte(text), &tree)
	}
	if err != nil {
		return nil
	}
	return tree
}

// Equal reports whether the files and their contents are the same.
func (f *Files) Equal(other *Files) bool { return maps.Equal(f.texts, other.texts) }

// IsEmpty reports whether there is a configuration file that is empty or absent. A program that writes
// a file in place makes it empty first. A file that cannot be read is not empty.
func (f *Files) IsEmpty() bool {
	err := f.errs[f.path]
	return f.path != "" && (err == nil || errors.Is(err, fs.ErrNotExist)) && strings.TrimSpace(withoutMark(f.texts[f.path])) == ""
}

// Special returns the path of a file that is not a regular file, or "". Such a file, as a
// pipe, can be read only once, and is not read here.
func (f *Files) Special() string { return f.special }

// Paths returns the paths of the files, sorted.
func (f *Files) Paths() []string { return slices.Sorted(maps.Keys(f.texts)) }

// Changed returns the paths of the keys whose values are not the same as before, sorted.
// A list is one value.
func (f *Files) Changed(before *Files) []string {
	var changed []string
	for key, value := range f.keys {
		if was, ok := before.keys[key]; !ok || was != value {
			changed = append(changed, key)
		}
	}
	for key := range before.keys {
		if _, ok := f.keys[key]; !ok {
			changed = append(changed, key)
		}
	}
	slices.Sort(changed)
	return changed
}

// flatten adds the values in a tree to all, by the path of their keys below path.
func flatten(path string, value any, all map[string]string) {
	table, ok := value.(map[string]any)
	if !ok || len(table) == 0 && path != "" {
		text, err := json.Marshal(value)
		if err != nil { // such as infinity
			text = fmt.Append(nil, value)
		}
		all[path] = string(text)
		return
	}
	for key, inner := range table {
		if !bare.MatchString(key) {
			key = strconv.Quote(key)
		}
		if path != "" {
			key = path + "." + key
		}
		flatten(key, inner, all)
	}
}

// bare are keys that TOML writes without quotes.
var bare = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
