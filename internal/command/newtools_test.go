// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/consort-go/consort/internal/exit"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/realservers"
)

// A server of the official SDK adds tools while a turn runs: they are called in the next
// exchange, and come after the earlier ones in each request.
func TestAToolAddedDuringARunIsCalled(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	script, err := filepath.Abs(filepath.Join("testdata", "grow.mjs"))
	if err != nil {
		t.Fatal(err)
	}
	model, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{
		says("", calls("grow__enable", `{"name":"zoom"}`)),
		says("", calls("grow__zoom", `{}`), calls("grow__enable", `{"name":"aim"}`)),
		says("", calls("grow__aim", `{}`)),
		{Expect: openaiserver.Expect{Contains: []string{"aim was called"}}, Reply: openaiserver.Message{Text: "Done."}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { model.Close() })
	quoted := make([]string, 0, 4)
	for _, word := range servers.Script(script, servers.Modules()) {
		quoted = append(quoted, fmt.Sprintf("%q", word))
	}
	path := file(t, fmt.Sprintf("[model]\nname = \"scripted\"\nbase_url = %q\nmax_retries = 0\n[mcp.grow]\ntransport = \"stdio\"\ncommand = [%s]\n",
		model.URL(), strings.Join(quoted, ", ")))
	o := consort(t, "--config", path, "run", "--approve", "grow__*", "--json", "Go.").expect(t, exit.Done)
	contains(t, "the events", o.stdout, `{"event":"tools_added","tools":2,"added":["grow__zoom"]}`, "zoom was called", "aim was called")
	var offered []string
	for _, request := range model.Requests() {
		offered = append(offered, strings.Join(offeredIn(t, request.Body), " "))
	}
	want := []string{"grow__enable", "grow__enable grow__zoom", "grow__enable grow__zoom grow__aim", "grow__enable grow__zoom grow__aim"}
	if !slices.Equal(offered, want) {
		t.Errorf("the requests offered %q, want %q", offered, want)
	}
}

// offeredIn returns the names of the tools that a request offers.
func offeredIn(t *testing.T, body []byte) (names []string) {
	t.Helper()
	var request struct {
		Tools []struct{ Function struct{ Name string } }
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	for _, tool := range request.Tools {
		names = append(names, tool.Function.Name)
	}
	return names
}
