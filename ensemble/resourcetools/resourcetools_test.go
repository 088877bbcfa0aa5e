// SPDX-License-Identifier: Apache-2.0

package resourcetools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/ensemble/resourcetools"
	"github.com/consort-go/consort/invoker"
)

func ExampleNew() {
	ctx := context.Background()
	notes := ensemble.New("notes", local.Library{
		Resources: []local.Resource{ensembletest.TextResource("note://today", "Buy brass.")},
	}.Source(), nil)
	resources, err := resourcetools.New("resources", notes)
	if err != nil {
		fmt.Println(err)
		return
	}
	roster, err := ensemble.NewRoster(notes, resources)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer roster.Close(ctx)
	catalog, err := roster.Catalog(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	read, _ := catalog.Find("resources__read_resource")
	output, err := read.Invoke(ctx, &invoker.Call{Arguments: json.RawMessage(`{"uri":"note://today"}`)})
	fmt.Println(canister.TextOf(output.Content), err)
	// Output:
	// Buy brass. <nil>
}

// resourceTools are the two tools over a local library with some long texts.
func resourceTools(t *testing.T) func(tool, arguments string) (string, *invoker.Failure) {
	options := ensembletest.ServerLibrary(nil)
	options.Resources = append(options.Resources, ensembletest.TextResource("x:long", strings.Repeat("€", 50_000)))
	for i := range 60 {
		r := ensembletest.TextResource(fmt.Sprintf("x:%d", i), "")
		r.Description = "line\nbreak " + strings.Repeat("long ", 1000)
		options.Resources = append(options.Resources, r)
	}
	library := ensemble.New("l", options.Source(), nil)
	tools, err := resourcetools.New("resources", library, ensemble.Local("empty"))
	if err != nil {
		t.Fatal(err)
	}
	roster, err := ensemble.NewRoster(library, tools)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { roster.Close(context.Background()) })
	catalog, err := roster.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return func(name, arguments string) (string, *invoker.Failure) {
		tool, _ := catalog.Find("resources__" + name)
		if !tool.Definition().Hints.ReadOnly {
			t.Errorf("%s does not say that it is read-only", name)
		}
		output, err := tool.Invoke(t.Context(), &invoker.Call{Arguments: json.RawMessage(arguments)})
		return canister.TextOf(output.Content), invoker.AsFailure(err)
	}
}

func TestResourceTools(t *testing.T) {
	call := resourceTools(t)
	text, failure := call("list_resources", `{}`)
	if failure != nil || !strings.Contains(text, "64 resources and templates, page 1 of 2.") || !strings.Contains(text,
		"- test://greeting (l, text/plain): Greeting\n") || len(text) > 50*400 {
		t.Errorf("page 1 (%d bytes): %.500s, %v", len(text), text, failure)
	}
	text, failure = call("list_resources", `{"page":2,"ensemble":"l"}`)
	if failure != nil || strings.Count(text, "\n") != 15 || !strings.Contains(text, "- template test://items/{id} (l): items\n") {
		t.Errorf("page 2: %v lines, %v", strings.Count(text, "\n"), failure)
	}
	if text, failure = call("list_resources", `{"ensemble":"empty"}`); failure != nil || !strings.HasPrefix(text, "0 resources") {
		t.Errorf("none: %q, %v", text, failure)
	}
	for _, wrong := range []string{`{"ensemble":"other"}`, `{"page":9}`} {
		if _, failure := call("list_resources", wrong); failure == nil || failure.Code != invoker.InvalidArguments || failure.Pointer == "" {
			t.Errorf("%s: %v", wrong, failure)
		}
	}
	if text, failure = call("read_resource", `{"uri":"test://items/7"}`); text != "item 7" || failure != nil {
		t.Errorf("read: %q, %v", text, failure)
	}
	if text, failure = call("read_resource", `{"uri":"test://bytes"}`); !strings.Contains(text, "3 bytes, application/octet-stream") || failure != nil {
		t.Errorf("bytes: %q, %v", text, failure)
	}
	if _, failure = call("read_resource", `{"uri":"x:none"}`); failure == nil || failure.Code != invoker.NotFound ||
		!strings.Contains(failure.Message, "list_resources") {
		t.Errorf("what is not there: %v", failure)
	}
}

// TestReadOn: a long text is read in parts that join, and no character is cut.
func TestReadOn(t *testing.T) {
	call := resourceTools(t)
	whole, offset := "", 0
	for range 3 {
		text, failure := call("read_resource", fmt.Sprintf(`{"uri":"x:long","offset":%d}`, offset))
		if failure != nil {
			t.Fatal(failure)
		}
		part, _, cut := strings.Cut(text, "\n[cut: ")
		whole += part
		offset = len(whole)
		if !cut {
			break
		}
	}
	if whole != strings.Repeat("€", 50_000) {
		t.Errorf("%d bytes came together", len(whole))
	}
	if text, failure := call("read_resource", `{"uri":"x:long","offset":149998}`); text != "€" || failure != nil {
		t.Errorf("from within a character: %q, %v", text, failure)
	}
	if _, failure := call("read_resource", `{"uri":"x:long","offset":150001}`); failure == nil || failure.Pointer != "/offset" {
		t.Errorf("beyond the end: %v", failure)
	}
}
