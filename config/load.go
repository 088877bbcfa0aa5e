// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Options are the options of [Parse]. A nil pointer and the zero value of a field mean
// the default.
type Options struct {
	// Lookup returns the value of an environment variable; default os.LookupEnv.
	Lookup func(name string) (string, bool)
	// ReadFile reads imported files; the default is os.ReadFile, up to 1 MiB.
	ReadFile func(path string) ([]byte, error)
}

// Load reads the file at path and the files that it imports. The error, if any, is an
// [*Error] with all problems.
func Load(path string) (*Config, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, &Error{Problems: []*Problem{{File: path, Message: fileFault(err), Err: err}}}
	}
	return Parse(path, data, nil)
}

// Parse reads a configuration from data. name appears in problems, and relative paths in
// data are relative to the directory of name. The error, if any, is an [*Error] with all
// problems. Parse may be called concurrently.
func Parse(name string, data []byte, options *Options) (*Config, error) {
	if options == nil {
		options = &Options{}
	}
	lookup := options.Lookup
	if lookup == nil {
		lookup = os.LookupEnv
	}
	if len(data) > maxFileBytes {
		return nil, &Error{Problems: []*Problem{{File: name, Message: fileFault(errTooLarge), Err: errTooLarge}}}
	}
	r := &reader{
		source:   &source{name: name, data: withoutMark(data)},
		problems: &problems{},
		expander: expander{lookup: lookup},
	}
	config := &Config{}
	if root := tomlTree(r.source, r.problems); root != nil {
		r.table(root, config.fields())
		distinctServers(r, root)
		if budgets := root.member("budgets"); budgets != nil && config.Budgets != nil {
			checkBudgets(config.Budgets, r, budgets, config.Model)
		}
		config.imports(r, root, options)
		config.source, config.root = r.source, root
	}
	if err := r.problems.err(); err != nil {
		return nil, err
	}
	return config, nil
}

var errTooLarge = fmt.Errorf("larger than %d bytes", maxFileBytes)

// read reads an imported file.
func (o *Options) read(path string) ([]byte, error) {
	read := o.ReadFile
	if read == nil {
		read = readFile
	}
	data, err := read(path)
	if err == nil && len(data) > maxFileBytes {
		err = errTooLarge
	}
	return withoutMark(data), err
}

// readFile reads a file up to maxFileBytes.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = errTooLarge
	}
	return data, err
}

// fileFault describes why a file cannot be read, without its path.
func fileFault(err error) string {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	return "cannot read the file: " + err.Error()
}

// withoutMark removes the byte order mark that some editors write at the start.
func withoutMark(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) }
