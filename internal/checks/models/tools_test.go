// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/invoker"
)

// The beginnings of files, by which servers recognize their types.
var (
	png  = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00")
	gif  = []byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;")
	jpeg = []byte("\xff\xd8\xff\xe0\x00\x10JFIF\x00")
	webp = []byte("RIFF\x1a\x00\x00\x00WEBPVP8L")
	pdf  = []byte("%PDF-1.7\n%%EOF\n")
)

// contents are the contents of results and of users' messages, by type.
var contents = map[string][]canister.Content{
	"png":       {canister.ImageContent{Data: png, MIME: "image/png"}},
	"gif":       {canister.Text("A picture:"), canister.ImageContent{Data: gif, MIME: "image/gif"}, canister.Text("there.")},
	"jpeg":      {canister.ImageContent{Data: jpeg, MIME: "image/JPEG; q=1"}},
	"webp":      {canister.ImageContent{Data: webp, MIME: "image/webp"}},
	"wrong":     {canister.ImageContent{Data: gif, MIME: "image/png"}},
	"bmp":       {canister.ImageContent{Data: []byte("BM1234"), MIME: "image/bmp"}},
	"hollow":    {canister.ImageContent{Data: []byte{}, MIME: "image/png"}},
	"address":   {canister.ImageContent{URL: "https://example.com/a.png"}},
	"dataURL":   {canister.ImageContent{URL: "data:image/gif;base64,R0lGODlhAQABAAAAADs="}},
	"oddURL":    {canister.ImageContent{URL: "data:image/svg+xml,<svg/>"}},
	"ftp":       {canister.ImageContent{URL: "ftp://example.com/a.png"}},
	"wav":       {canister.AudioContent{Data: []byte("RIFF....WAVE"), MIME: "audio/wav"}},
	"ogg":       {canister.AudioContent{Data: []byte("OggS"), MIME: "audio/ogg"}},
	"pdf":       {canister.ResourceContent{URI: "file:///a/report%201.pdf", MIME: "application/pdf", Blob: pdf}},
	"nopdf":     {canister.ResourceContent{URI: "file:///a/b.pdf", MIME: "application/pdf", Blob: []byte("no")}},
	"blob":      {canister.ResourceContent{URI: "file:///b", MIME: "application/zip", Blob: []byte("PK")}},
	"imageBlob": {canister.ResourceContent{URI: "file:///b.png", MIME: "image/png", Blob: png}, canister.Text("")},
	"file":      {canister.ResourceContent{URI: "file:///c.txt", MIME: "text/plain", Text: "line"}},
	"link":      {canister.LinkContent{URI: "https://example.com", Name: "a link"}},
	"json":      {canister.StructuredContent{JSON: json.RawMessage(`{"z":0.10,"y":"<&>"}`)}},
	"both":      {canister.Text(`{"a":1}`), canister.StructuredContent{JSON: json.RawMessage(`{"a":1}`)}},
	"many":      {canister.ImageContent{Data: png, MIME: "image/png"}, canister.ImageContent{Data: gif, MIME: "image/gif"}, canister.Text("two")},
	"nothing":   nil,
	"empty":     {canister.Text("")},
	"blank":     {canister.Text(" \n\t")},
	"blanks":    {canister.Text(""), canister.Text(" "), canister.Text("")},
	"zero":      {canister.Text("a\x00b\u2028")},
	"large":     {canister.Text(strings.Repeat("word ", 1500))},
}

var contentNames = slices.Sorted(maps.Keys(contents))

// toolNames are the names of the tools as the model sees them.
func toolNames() []string {
	return []string{
		"local__text", "local__fails", "local__panics", "local__content", "local__broken", "local__once", "local__asks", "local__samples", "local__slow",
	}
}

// tools returns the tools of a life.
func (l *life) tools() (*ensemble.Ensemble, error) {
	var all []invoker.Invoker
	for _, full := range toolNames() {
		name := strings.TrimPrefix(full, "local__")
		definition := invoker.Definition{
			Name: name, Description: "A tool: " + name + ".", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{}}}`),
			Hints: invoker.Hints{ReadOnly: name == "text", Idempotent: name == "asks"},
		}
		tool, err := invoker.Raw(definition, func(ctx context.Context, call *invoker.Call) (invoker.Output, error) { return l.run(ctx, name, call) }, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, tool)
	}
	return ensemble.Local("local", all...), nil
}

// run acts according to the name of the tool.
func (l *life) run(ctx context.Context, name string, call *invoker.Call) (invoker.Output, error) {
	switch name {
	case "fails":
		return invoker.Output{}, invoker.Failf(invoker.NotFound, "%s", l.text())
	case "broken":
		return invoker.Output{}, &invoker.Failure{Content: l.content()}
	case "panics":
		panic(l.text())
	case "content":
		return invoker.Output{Content: l.content()}, nil
	case "asks":
		if _, err := call.Ask(ctx, &invoker.ElicitRequest{Message: l.text()}); err != nil {
			return invoker.Output{}, err
		}
	case "samples":
		request := &invoker.SampleRequest{System: l.text(), MaxTokens: int64(l.of(0, 1, 500)), Messages: []invoker.SampleMessage{
			{Role: "user", Content: l.content()}, {Role: "assistant", Content: canister.Texts(l.text())}, {Role: "user", Content: canister.Texts(l.text())},
		}}
		if _, err := call.Sample(ctx, request); err != nil {
			return invoker.Output{}, err
		}
	case "slow":
		l.pause(ctx)
	}
	return invoker.Output{Content: canister.Texts(l.text())}, nil
}

// content returns contents of any kind.
func (l *life) content() []canister.Content {
	var all []canister.Content
	for range l.of(1, 1, 1, 2) {
		all = append(all, contents[contentNames[l.upTo(len(contentNames))]]...)
	}
	return all
}
