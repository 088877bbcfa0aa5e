// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/transcript"
)

// Format is an output format of Export.
type Format string

// The formats.
const (
	JSONL    Format = "jsonl"    // lines of JSON, which Import reads
	Markdown Format = "markdown" // CommonMark
	HTML     Format = "html"     // one page, which loads nothing and runs nothing
)

// form writes conversations in one format.
type form interface {
	begin(first history.Info, count int) (string, error)
	conversation(history.Info) (string, error)
	canister(place int, c canister.Canister) (string, error)
	end() string
}

var forms = map[Format]form{JSONL: lines{}, Markdown: markdown{}, HTML: page{}}

// Check returns an error if the format is unknown.
func (f Format) Check() error {
	if forms[f] == nil {
		return fmt.Errorf("bundle: unknown format %q: want jsonl, markdown or html", string(f))
	}
	return nil
}

// Export writes the conversations with the given identities, in their order, as they
// are when it reaches each of them. An identity that the store does not know is an
// error that has [history.ErrNotFound] in its chain; the conversations before it have
// been written then.
//
// Export writes each canister with a single Write, so that w can inspect the text and
// hold it back. At most one canister is in memory at a time, if the store reads them
// one at a time.
func Export(ctx context.Context, w io.Writer, store history.Store, format Format, ids ...string) error {
	if err := format.Check(); err != nil {
		return err
	}
	as := forms[format]
	put := func(text string, err error) error {
		if err == nil && text != "" {
			_, err = io.WriteString(w, text)
		}
		return err
	}
	for i, id := range ids {
		info, err := store.Info(ctx, id)
		if err != nil {
			return fmt.Errorf("bundle: conversation %q: %w", id, err)
		}
		if i == 0 {
			err = put(as.begin(info, len(ids)))
		}
		if err == nil {
			err = put(as.conversation(info))
		}
		if err != nil {
			return err
		}
		for c, err := range transcript.Canisters(ctx, store, info) {
			if err == nil {
				err = put(as.canister(c.Number, c.Canister))
			}
			if err != nil {
				return err
			}
		}
	}
	return put(as.end(), nil)
}

// lines is the form that Import reads.
type lines struct{}

func (lines) begin(history.Info, int) (string, error) { return "", nil }
func (lines) end() string                             { return "" }

func (lines) conversation(info history.Info) (string, error) {
	line, err := json.Marshal(head{version, transcript.AboutOf(info)})
	return string(line) + "\n", err
}

func (lines) canister(_ int, c canister.Canister) (string, error) {
	line, err := canister.Marshal(c)
	return string(line) + "\n", err
}
