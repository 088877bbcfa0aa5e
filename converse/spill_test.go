// SPDX-License-Identifier: Apache-2.0

package converse_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/spill"
	"github.com/consort-go/consort/invoker"
)

func TestSpill(t *testing.T) {
	text, image := strings.Repeat("long ", 1000), bytes.Repeat([]byte{7}, 3000)
	big := fn("big", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: []canister.Content{
			canister.Text(text), canister.ImageContent{Data: image, MIME: "image/png"},
		}}, nil
	})
	folder := filepath.Join(t.TempDir(), "spilled here")
	for _, test := range []struct {
		name  string
		keep  func(context.Context, string, canister.Content) (canister.LinkContent, error)
		links int
	}{
		{"kept", spill.NewFolder(folder).Keep, 2},
		{"not kept", nil, 0},
		{"panic", func(context.Context, string, canister.Content) (canister.LinkContent, error) { panic("spilled") }, 0},
		{"no folder", spill.NewFolder(filepath.Join(os.DevNull, "x")).Keep, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			script := conversetest.NewScript(conversetest.Line{Calls: []conversetest.Call{call("big", "{}")}}, conversetest.Line{Text: "ok"})
			talk := converse.New(script, newRoster(t, big), &converse.Options{
				Spill: test.keep, Limits: converse.Limits{ResultBytes: 100},
			})
			play(t, talk, "Go.")
			var found [][]byte
			for _, c := range results(talk.History())[0].Content {
				link, ok := c.(canister.LinkContent)
				if !ok {
					continue
				}
				address, err := url.Parse(link.URI)
				if err != nil {
					t.Fatal(err)
				}
				data, err := os.ReadFile(filepath.FromSlash(address.Path))
				if err != nil || int64(len(data)) != *link.Size {
					t.Fatalf("%d bytes, %v", len(data), err)
				}
				found = append(found, data)
			}
			if len(found) != test.links {
				t.Fatalf("there are %d links, want %d", len(found), test.links)
			}
			if test.links == 2 && (string(found[0]) != text || !bytes.Equal(found[1], image)) {
				t.Error("what was spilled is not what was cut")
			}
		})
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 3 { // with that of the owners
		t.Errorf("the folder has %v, %v", entries, err)
	}
}

// A link that cannot enter the history is left out; the result enters, once.
func TestSpillOfAnInvalidLink(t *testing.T) {
	large := json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)
	tool := fn("big", func(context.Context, *invoker.Call) (invoker.Output, error) {
		return invoker.Output{Content: canister.Texts("made"), Metadata: canister.Fields{"large": large}}, nil
	})
	talk := process(t, history.NewMemory(), newRoster(t, tool), converse.Options{
		Limits: converse.Limits{ResultBytes: 100},
		Spill: func(context.Context, string, canister.Content) (canister.LinkContent, error) {
			return canister.LinkContent{URI: "file:///x", Extra: canister.Extra{Metadata: canister.Fields{"a": json.RawMessage("{")}}}, nil
		},
	}, asks(call("big", "{}")), done)
	play(t, talk, "Go.")
	sound(t, talk.History())
	if r := results(talk.History())[0]; r.Failed() || !strings.HasPrefix(canister.TextOf(r.Content), "made") {
		t.Errorf("the result is %+v", r)
	}
}
