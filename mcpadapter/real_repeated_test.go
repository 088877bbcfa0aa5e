// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/openaimodel"
	"github.com/consort-go/consort/internal/testing/openaiserver"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/mcpadapter"
)

// If real servers return a result both as text and as structured content, the model
// receives it once: at most 1.1 times the bytes of the larger form.
func TestRealResultsAreSentOnce(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	dir := realDir(t)
	text := strings.Repeat("A line with \"quotes\" and a tab\tin it.\n", 60)
	for _, name := range []string{"long.txt", "short.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		text = "brass"
	}
	r := newRealRoster(t,
		realEnsemble("everything", stdioSource(servers.Everything(), mcpadapter.ClientOptions{}, nil)),
		realEnsemble("files", stdioSource(servers.Filesystem(dir), mcpadapter.ClientOptions{}, nil)),
		realEnsemble("memory", stdioSource(servers.Memory(), mcpadapter.ClientOptions{},
			map[string]string{"MEMORY_FILE_PATH": filepath.Join(dir, "graph.jsonl")})),
		realEnsemble("thinking", stdioSource(servers.SequentialThinking(), mcpadapter.ClientOptions{}, nil)),
	)
	where, long, short := quoted(dir), quoted(filepath.Join(dir, "long.txt")), quoted(filepath.Join(dir, "short.txt"))
	calls := []openaiserver.Call{
		{Name: "files__read_text_file", Arguments: `{"path":` + long + `}`},
		{Name: "files__read_text_file", Arguments: `{"path":` + short + `}`},
		{Name: "files__read_multiple_files", Arguments: `{"paths":[` + long + `,` + short + `]}`},
		{Name: "files__list_directory", Arguments: `{"path":` + where + `}`},
		{Name: "files__list_directory_with_sizes", Arguments: `{"path":` + where + `}`},
		{Name: "files__directory_tree", Arguments: `{"path":` + where + `}`},
		{Name: "files__search_files", Arguments: `{"path":` + where + `,"pattern":"*.txt"}`},
		{Name: "files__get_file_info", Arguments: `{"path":` + long + `}`},
		{Name: "files__list_allowed_directories", Arguments: `{}`},
		{Name: "memory__create_entities", Arguments: `{"entities":[{"name":"Engine","entityType":"machine","observations":["brass"]}]}`},
		{Name: "memory__read_graph", Arguments: `{}`},
		{Name: "memory__search_nodes", Arguments: `{"query":"brass"}`},
		{Name: "everything__get-structured-content", Arguments: `{"location":"Chicago"}`},
		{Name: "thinking__sequentialthinking", Arguments: `{"thought":"So.","thoughtNumber":1,"totalThoughts":1,"nextThoughtNeeded":false}`},
	}
	server, err := openaiserver.Start(openaiserver.Script{Steps: []openaiserver.Step{
		{Reply: openaiserver.Message{Calls: calls}}, {Reply: openaiserver.Message{Text: "Done."}},
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	model, err := openaimodel.New("scripted", &openaimodel.Options{BaseURL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	talk := converse.New(model, r.Roster, nil)
	if _, err := talk.Ask(atLast(t), canister.Text("Look around.")); err != nil {
		t.Fatal(err)
	}
	sent := toolMessages(t, server.Requests()[1].Body)
	twoForms := 0
	for i, result := range resultsOf(talk.History()) {
		if result.Code != "" {
			t.Errorf("%s failed: %s", calls[i].Name, canister.TextOf(result.Content))
		}
		texts, structured := formsOf(result.Content)
		if texts > 0 && structured > 0 {
			twoForms++
		}
		if most := max(texts, structured); float64(len(sent[i])) > 1.1*float64(most) {
			t.Errorf("%s: %d bytes are sent, the forms have %d and %d:\n%s", calls[i].Name, len(sent[i]), texts, structured, sent[i])
		} else {
			t.Logf("%s: %d bytes are sent, the forms have %d and %d", calls[i].Name, len(sent[i]), texts, structured)
		}
	}
	if twoForms < 8 {
		t.Errorf("only %d results came in two forms", twoForms)
	}
}

// toolMessages returns the texts of the tool messages of a request.
func toolMessages(t *testing.T, body []byte) (texts []string) {
	t.Helper()
	var request struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatal(err)
	}
	for _, message := range request.Messages {
		if message.Role == "tool" {
			var text string
			if err := json.Unmarshal(message.Content, &text); err != nil {
				t.Fatal(err)
			}
			texts = append(texts, text)
		}
	}
	return texts
}

func resultsOf(history []canister.Canister) (found []canister.Result) {
	for _, c := range history {
		if r, ok := c.(canister.Result); ok {
			found = append(found, r)
		}
	}
	return found
}

// formsOf returns how many bytes the two forms of a result have.
func formsOf(contents []canister.Content) (texts, structured int) {
	for _, c := range contents {
		switch c := c.(type) {
		case canister.TextContent:
			texts += len(c.Text)
		case canister.StructuredContent:
			structured += len(c.JSON)
		}
	}
	return texts, structured
}
