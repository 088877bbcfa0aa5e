// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/consort-go/consort/config/internal/grammar"

	"github.com/consort-go/consort/config/internal/document"
	"github.com/consort-go/consort/config/internal/expand"
	"github.com/consort-go/consort/internal/jsonc"
)

// Options are the options of [Parse]. A nil pointer and the zero value of a field mean
// the default.
type Options struct {
	// Lookup returns the value of an environment variable; default os.LookupEnv.
	Lookup func(name string) (string, bool)
	// ReadFile reads the file of [Load], and imported files; the default is os.ReadFile, up
	// to 1 MiB.
	ReadFile func(path string) ([]byte, error)
	// Set holds settings KEY=VALUE that override the file; of two for a key, the later one
	// applies. A key is dotted, and a value is written as in TOML; anything else is taken as
	// a string. A relative path starts at the working directory. If a setting moves the
	// model to another host, the credentials of the file do not apply to it. Problems name
	// a setting as --set KEY.
	Set []string
	// SetBy has the flags of keys that are set by a flag of their own, such as "--model"
	// for "model.name", for problems; may be nil.
	SetBy map[string]string
}

// Load reads the file at path and the files that it imports. An empty path means no file:
// the settings of the options are all there is. The error, if any, is an [*Error] with all
// problems. Nil options mean the defaults.
func Load(path string, options *Options) (*Config, error) {
	if path == "" {
		return Parse(noFile, nil, options)
	}
	data, err := options.read(path)
	if err != nil {
		return nil, &Error{Problems: []*Problem{{File: path, Message: fileFault(err), Err: err}}}
	}
	return Parse(path, data, options)
}

// noFile stands for the file in messages if no file is read.
const noFile = "the command line"

// Parse reads a configuration from data: TOML, or the JSON file of another MCP host, whose
// servers are then the configuration. name appears in problems, and relative paths in
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
	r := &grammar.Reader{
		Source:   &document.Source{Name: name, Data: withoutMark(data)},
		Faults:   &grammar.Faults{},
		Expander: expand.Expander{Lookup: lookup},
	}
	config, ignored := &Config{}, &grammar.Faults{}
	root, host := &document.Node{Value: document.NewTable()}, (*document.Node)(nil)
	if isJSON(r.Source.Data) {
		host = r.Faults.Tree(document.JSON, r.Source)
	} else {
		root = r.Faults.Tree(document.TOML, r.Source)
	}
	if root != nil {
		options.override(r, root)
		r.Table(root, config.fields())
		distinctServers(r, root)
		config.checkLogins(r, root)
		config.checkIdentity(r, root)
		if budgets := root.Member("budgets"); budgets != nil && config.Budgets != nil {
			config.checkBudgets(r, budgets)
		}
		if host != nil {
			config.importTree(r, r.Source, host, ignored)
		}
		config.imports(r, root, options, ignored)
		config.Ignored = problemsOf(ignored)
		config.source, config.root = r.Source, root
	}
	if err := errorOf(r.Faults); err != nil {
		return nil, err
	}
	return config, nil
}

const maxFileBytes = 1 << 20 // of one file

var errTooLarge = fmt.Errorf("larger than %d bytes", maxFileBytes)

// read reads the file of Load, or an imported one; o may be nil.
func (o *Options) read(path string) ([]byte, error) {
	read := readFile
	if o != nil && o.ReadFile != nil {
		read = o.ReadFile
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

// isJSON reports whether data begins like a JSON object, after comments. Such a text is
// never valid TOML.
func isJSON(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(jsonc.Plain(data)), []byte("{"))
}
