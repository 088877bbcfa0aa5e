// SPDX-License-Identifier: Apache-2.0

package stage_test

import (
	"context"
	"slices"
	"testing"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/local"
	"github.com/consort-go/consort/internal/testing/stage"
	"github.com/consort-go/consort/invoker"
)

func TestAdditionsAreNews(t *testing.T) {
	s := stage.New(local.Library{})
	roster, err := ensemble.NewRoster(ensemble.New("stage", s, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer roster.Close(context.Background())
	if err := roster.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if tools := names(t, roster); len(tools) != 0 {
		t.Errorf("tools before: %v", tools)
	}
	news := make(chan ensemble.News, 16)
	watch := roster.Watch(t.Context())
	go func() {
		defer close(news)
		for n := range watch {
			news <- n
		}
	}()
	tool, err := invoker.New("late", "Come late.", func(context.Context, struct{}) (string, error) { return "here", nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.AddTool(tool)
	await(t, news, ensemble.ToolsChanged)
	if tools := names(t, roster); !slices.Equal(tools, []string{"late"}) {
		t.Errorf("tools after: %v", tools)
	}
	s.AddPrompt(local.Prompt{
		Prompt: ensemble.Prompt{Name: "later"},
		Get: func(context.Context, map[string]string) (*ensemble.Messages, error) {
			return &ensemble.Messages{Messages: []ensemble.PromptMessage{{Role: "user", Content: canister.Texts("Hello.")}}}, nil
		},
	})
	await(t, news, ensemble.PromptsChanged)
	messages, err := roster.GetPrompt(t.Context(), ensemble.NameFor("stage", "later"), nil)
	if err != nil || canister.TextOf(messages.Messages[0].Content) != "Hello." {
		t.Errorf("prompt = %+v, err = %v", messages, err)
	}
}

// await receives news until there is one of the kind: a list that was fetched again is
// reported again.
func await(t *testing.T, news <-chan ensemble.News, kind ensemble.NewsKind) {
	t.Helper()
	for n := range news {
		if n.Kind == kind {
			return
		}
	}
	t.Errorf("there is no news of %s", kind)
}

func names(t *testing.T, roster *ensemble.Roster) []string {
	t.Helper()
	catalog, err := roster.Catalog(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range catalog.Tools() {
		names = append(names, tool.Definition().Name)
	}
	return names
}
