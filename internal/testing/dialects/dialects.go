// SPDX-License-Identifier: Apache-2.0

// Package dialects has an exchange with each of the servers that people use, in the form in
// which it was recorded or is written by the server's own source.
package dialects

import (
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/internal/testing/modeltest"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/tidwall/gjson"
	"golang.org/x/tools/txtar"
)

// Dialect is an exchange with a server.
type Dialect struct {
	Name   string // of the file, such as vllm-responses
	Server string // such as vLLM
	API    string // chat, responses or messages
	Source string // addresses of the recordings
	Date   string // on which the sources were looked up
	// Request has members that the request must have.
	Request []byte
	// Stream and Whole are the bodies of the answer, as a stream and in one piece.
	Stream, Whole []byte
	Want          openaiserver.Want
}

//go:embed testdata/*.txtar
var files embed.FS

// All returns the dialects of an API.
func All(t testing.TB, api string) []Dialect {
	t.Helper()
	entries, err := files.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	var all []Dialect
	for _, entry := range entries {
		data, err := files.ReadFile("testdata/" + entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		d, err := parse(strings.TrimSuffix(entry.Name(), ".txtar"), data)
		if err != nil {
			t.Fatalf("%s: %v", entry.Name(), err)
		}
		if d.API == api {
			all = append(all, d)
		}
	}
	return all
}

// parse reads a file: a head with the source, and the sections request, stream, whole and
// want.
func parse(name string, data []byte) (Dialect, error) {
	archive := txtar.Parse(data)
	d := Dialect{Name: name}
	head := map[string]*string{"Server": &d.Server, "API": &d.API, "Source": &d.Source, "Looked up": &d.Date}
	for line := range strings.Lines(string(archive.Comment)) {
		if member, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && head[member] != nil {
			*head[member] = value
		}
	}
	for _, file := range archive.Files {
		switch file.Name {
		case "request":
			d.Request = file.Data
		case "stream":
			d.Stream = file.Data
		case "whole":
			d.Whole = file.Data
		case "want":
			if err := json.Unmarshal(file.Data, &d.Want); err != nil {
				return d, err
			}
		default:
			return d, fmt.Errorf("a section is named %q", file.Name)
		}
	}
	if d.Server == "" || d.API == "" || d.Date == "" || !strings.HasPrefix(d.Source, "https://") || len(d.Stream) == 0 || len(d.Whole) == 0 {
		return d, fmt.Errorf("the server, the API, the source, its date, the stream or the whole answer is missing")
	}
	return d, nil
}

// Check has the exchange with a model for a server, as a stream and in one piece, and
// compares the request and the reply.
func (d *Dialect) Check(t *testing.T, newModel func(t *testing.T, url string, whole bool) converse.Model, newRequest func() *converse.Request) {
	for name, whole := range map[string]bool{"stream": false, "whole": true} {
		t.Run(d.Name+"/"+name, func(t *testing.T) {
			replay := openaiserver.Recording(d.Stream)
			if whole {
				replay = openaiserver.Recording(d.Whole)
				replay.Header = http.Header{"Content-Type": {"application/json"}}
			}
			server, err := openaiserver.Start(openaiserver.Script{Repeat: true, Steps: []openaiserver.Step{{Reply: replay}}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			modeltest.Check(t, modeltest.Run(t.Context(), newModel(t, server.URL(), whole), newRequest()), d.Want)
			sent := server.Requests()[0].Body
			gjson.ParseBytes(d.Request).ForEach(func(member, value gjson.Result) bool {
				if got := gjson.GetBytes(sent, gjson.Escape(member.Str)).Raw; got != value.Raw && (!whole || !strings.HasPrefix(member.Str, "stream")) {
					t.Errorf("the request has %s for %s, want %s", got, member.Str, value.Raw)
				}
				return true
			})
		})
	}
}
