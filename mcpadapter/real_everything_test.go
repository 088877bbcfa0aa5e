// SPDX-License-Identifier: Apache-2.0

package mcpadapter_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/testing/mcptest"
	"github.com/consort-go/consort/internal/testing/realservers"
	"github.com/consort-go/consort/invoker"
	"github.com/consort-go/consort/mcpadapter"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// What server-everything offers: to any client, and to one with roots and a
// model too.
var (
	everythingTools = []string{
		"echo", "get-annotated-message", "get-env", "get-resource-links", "get-resource-reference",
		"get-structured-content", "get-sum", "get-tiny-image", "gzip-file-as-resource",
		"toggle-simulated-logging", "toggle-subscriber-updates", "trigger-long-running-operation",
		"trigger-elicitation-request", "trigger-url-elicitation",
	}
	everythingMore = []string{"get-roots-list", "trigger-sampling-request"}
)

// embedder answers the server's questions.
type embedder struct {
	asked   []invoker.ElicitRequest
	sampled []invoker.SampleRequest
	elicit  *invoker.ElicitResult
	sample  *invoker.SampleResult
}

func (e *embedder) options(logger *zap.Logger) mcpadapter.ClientOptions {
	return mcpadapter.ClientOptions{
		Server: "everything", Logger: logger, LogLevel: "debug",
		Roots: []mcpadapter.Root{{URI: "file:///srv/project", Name: "The Project"}},
		Elicit: func(_ context.Context, r *invoker.ElicitRequest) (*invoker.ElicitResult, error) {
			e.asked = append(e.asked, *r)
			return e.elicit, nil
		},
		Sample: func(_ context.Context, r *invoker.SampleRequest) (*invoker.SampleResult, error) {
			e.sampled = append(e.sampled, *r)
			return e.sample, nil
		},
	}
}

func TestRealEverything(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	for _, over := range everythingOver {
		t.Run(over.name, func(t *testing.T) {
			core, logs := observer.New(zapcore.DebugLevel)
			e := new(embedder)
			server := realEnsemble("everything", over.source(t, servers, e.options(zap.New(core))))
			r := newRealRoster(t, server)
			catalog := r.offers(t, append(everythingMore, everythingTools...)...)
			if aside := catalog.Aside(); len(aside) != 1 || aside[0].Tool != "simulate-research-query" || !strings.Contains(aside[0].Reason, "task") {
				t.Errorf("set aside: %v, want the one tool that is a task", aside)
			}
			t.Logf("connected in %s", server.Snapshot().ConnectDuration)
			if peer := server.Snapshot().Peer; peer.Name != "mcp-servers/everything" || peer.Title == "" ||
				peer.Version == "" || peer.Instructions == "" || peer.Protocol != "MCP 2025-11-25" {
				t.Errorf("the peer is %+v", peer)
			}
			t.Run("content", func(t *testing.T) { everythingContent(t, r) })
			t.Run("structure", func(t *testing.T) { everythingStructure(t, r) })
			t.Run("progress", func(t *testing.T) { everythingProgress(t, r) })
			t.Run("questions", func(t *testing.T) { everythingQuestions(t, r, e) })
			t.Run("logging", func(t *testing.T) { everythingLogging(t, r, logs) })
			t.Run("errors", func(t *testing.T) { everythingErrors(t, r) })
			t.Run("rest", func(t *testing.T) {
				r.says(t, "everything__get-env", `{}`, `"PATH"`)
				r.says(t, "everything__toggle-subscriber-updates", `{}`, "Started")
				r.says(t, "everything__toggle-subscriber-updates", `{}`, "Stopped")
				r.allCalled(t, append(everythingMore, everythingTools...)...)
			})
		})
	}
}

func everythingContent(t *testing.T, r *realRoster) {
	r.says(t, "everything__echo", `{"message":"Grüße, 世界"}`, "Echo: Grüße, 世界")
	r.says(t, "everything__get-sum", `{"a":2,"b":3}`, "The sum of 2 and 3 is 5.")

	contents := r.must(t, "everything__get-tiny-image", `{}`)
	images := only[canister.ImageContent](contents)
	if len(contents) != 3 || len(images) != 1 || images[0].MIME != "image/png" {
		t.Fatalf("get-tiny-image returns %v", contents)
	}
	// One of the checksums further down is wrong, by the server's own fault.
	if config, err := png.DecodeConfig(bytes.NewReader(images[0].Data)); err != nil || config.Width != 20 {
		t.Errorf("the image is none: %v", err)
	}

	contents = r.must(t, "everything__get-annotated-message", `{"messageType":"error","includeImage":true}`)
	if len(contents) != 2 {
		t.Fatalf("get-annotated-message returns %v", contents)
	}
	if got := string(only[canister.TextContent](contents)[0].Metadata["mcp/annotations"]); got != `{"audience":["user","assistant"],"priority":1}` {
		t.Errorf("the annotations of the text are %s", got)
	}
	if got := string(only[canister.ImageContent](contents)[0].Metadata["mcp/annotations"]); got != `{"audience":["user"],"priority":0.5}` {
		t.Errorf("the annotations of the image are %s", got)
	}

	contents = r.must(t, "everything__get-structured-content", `{"location":"Chicago"}`)
	const chicago = `{"temperature":36,"conditions":"Light rain / drizzle","humidity":82}`
	structured := only[canister.StructuredContent](contents)
	if len(contents) != 2 || canister.TextOf(contents) != chicago || len(structured) != 1 || string(structured[0].JSON) != chicago {
		t.Errorf("get-structured-content returns %v", contents)
	}
}

func everythingStructure(t *testing.T, r *realRoster) {
	links := only[canister.LinkContent](r.must(t, "everything__get-resource-links", `{"count":4}`))
	if len(links) != 4 {
		t.Fatalf("get-resource-links returns %d links, want 4", len(links))
	}
	for _, link := range links {
		if link.URI == "" || link.Name == "" || link.Description == "" || link.MIME == "" {
			t.Errorf("a link lacks something: %+v", link)
		}
	}

	text := only[canister.ResourceContent](r.must(t, "everything__get-resource-reference", `{"resourceType":"Text","resourceId":1}`))
	if len(text) != 1 || text[0].Text == "" || text[0].Blob != nil || text[0].URI == "" || text[0].MIME != "text/plain" {
		t.Errorf("the text resource is %+v", text)
	}
	blob := only[canister.ResourceContent](r.must(t, "everything__get-resource-reference", `{"resourceType":"Blob","resourceId":2}`))
	if len(blob) != 1 || len(blob[0].Blob) == 0 || blob[0].Text != "" {
		t.Errorf("the binary resource is %+v", blob)
	}

	data := quoted("data:text/plain;base64," + base64.StdEncoding.EncodeToString([]byte("pack me")))
	packed := only[canister.ResourceContent](r.must(t, "everything__gzip-file-as-resource", `{"name":"a.gz","data":`+data+`,"outputType":"resource"}`))
	if len(packed) != 1 || packed[0].MIME != "application/gzip" || unpacked(t, packed[0].Blob) != "pack me" {
		t.Errorf("the packed resource is %+v", packed)
	}
	links = only[canister.LinkContent](r.must(t, "everything__gzip-file-as-resource", `{"name":"b.gz","data":`+data+`,"outputType":"resourceLink"}`))
	if len(links) != 1 || !strings.HasSuffix(links[0].URI, "b.gz") {
		t.Errorf("the link to the packed resource is %+v", links)
	}
}

func unpacked(t *testing.T, packed []byte) string {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// everythingProgress: all reports come, in their order, before the result, also
// to a listener that takes longer for each than the server does.
func everythingProgress(t *testing.T, r *realRoster) {
	var reports []invoker.Progress
	returned := false
	call := &invoker.Call{
		Arguments: []byte(`{"duration":0.3,"steps":6}`),
		Progress: func(p invoker.Progress) {
			if returned {
				t.Error("a report came after the result")
			}
			reports = append(reports, p)
			time.Sleep(80 * time.Millisecond)
		},
	}
	contents, err := r.invoke(t, "everything__trigger-long-running-operation", call)
	returned = true
	if err != nil || !strings.Contains(canister.TextOf(contents), "completed") {
		t.Errorf("%v, %v", contents, err)
	}
	if len(reports) != 6 {
		t.Fatalf("%d reports, want 6: %v", len(reports), reports)
	}
	for i, p := range reports {
		if p.Done != float64(i+1) || p.Total != 6 {
			t.Errorf("report %d is %+v", i, p)
		}
	}
}

func everythingQuestions(t *testing.T, r *realRoster, e *embedder) {
	r.says(t, "everything__get-roots-list", `{}`, "file:///srv/project", "The Project")

	e.sample = &invoker.SampleResult{Text: "A haiku.", Model: "model-of-ours", Finish: "endTurn"}
	r.says(t, "everything__trigger-sampling-request", `{"prompt":"Write a haiku.","maxTokens":17}`, "A haiku.", "model-of-ours")
	asked := e.sampled[len(e.sampled)-1]
	if asked.MaxTokens != 17 || asked.System == "" || len(asked.Messages) != 1 ||
		!strings.Contains(canister.TextOf(asked.Messages[0].Content), "Write a haiku.") {
		t.Errorf("the server asked the model for %+v", asked)
	}
	e.sample = nil
	r.fails(t, "everything__trigger-sampling-request", `{"prompt":"Write a haiku."}`, invoker.ExecutionFailed, "refused")

	e.elicit = &invoker.ElicitResult{Action: invoker.Accept, Content: map[string]any{"name": "Ada"}}
	r.says(t, "everything__trigger-elicitation-request", `{}`, "- Name: Ada", "- Favorite Integer: 42") // a default of the schema
	if form := e.asked[len(e.asked)-1]; form.Message == "" || !strings.Contains(string(form.Schema), "firstLine") {
		t.Errorf("the server asked the person %+v", form)
	}
	e.elicit = &invoker.ElicitResult{Action: invoker.Decline}
	r.says(t, "everything__trigger-elicitation-request", `{}`, "declined")
	e.elicit = nil
	r.says(t, "everything__trigger-elicitation-request", `{}`, "cancelled")

	const page = `{"url":"https://example.com/sign-in","elicitationId":"e-1"}`
	e.elicit = &invoker.ElicitResult{Action: invoker.Accept}
	r.says(t, "everything__trigger-url-elicitation", page, "completed", "e-1")
	if visit := e.asked[len(e.asked)-1]; visit.URL != "https://example.com/sign-in" {
		t.Errorf("the server sent the person to %+v", visit)
	}
	r.fails(t, "everything__trigger-url-elicitation", `{"url":"https://example.com/","errorPath":true}`, invoker.Unauthorized,
		"https://modelcontextprotocol.io")
}

// everythingLogging: log messages of the server reach the logger under its name.
func everythingLogging(t *testing.T, r *realRoster, logs *observer.ObservedLogs) {
	r.says(t, "everything__toggle-simulated-logging", `{}`, "Started")
	fromServer := func(text string) bool {
		for _, entry := range logs.All() {
			fields := entry.ContextMap()
			data, _ := fields["data"].(string)
			if fields["event"] == "mcp.server.said" && strings.Contains(data, text) && fields["server"] == "everything" {
				return true
			}
		}
		return false
	}
	for _, text := range []string{"Roots updated: 1 root", "level"} { // the level is the server's whim
		if !comesTrue(func() bool { return fromServer(text) }) {
			t.Fatalf("no entry with %q in the log; it has %v", text, logs.All())
		}
	}
	r.says(t, "everything__toggle-simulated-logging", `{}`, "Stopped")
}

func everythingErrors(t *testing.T, r *realRoster) {
	r.fails(t, "everything__get-sum", `{"a":"two"}`, invoker.InvalidArguments, "/a: ", "/b: is missing")
	r.fails(t, "everything__get-resource-links", `{"count":11}`, invoker.InvalidArguments, "/count: ")
	r.fails(t, "everything__echo", `{"message":`, invoker.InvalidArguments)
	r.fails(t, "everything__get-resource-reference", `{"resourceId":1.5}`, invoker.ExecutionFailed, "Invalid resourceId") // isError
	if _, ok := r.catalog(t).Find("everything__ecko"); ok {
		t.Error("a tool that is not there was found")
	}
	if near := r.catalog(t).Nearest("everything__ecko", 1); len(near) != 1 || near[0] != "everything__echo" {
		t.Errorf("the nearest names are %q", near)
	}
}

// TestRealEverythingUnanswered: questions are declined if no person can answer them.
func TestRealEverythingUnanswered(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	for _, over := range everythingOver {
		t.Run(over.name, func(t *testing.T) {
			r := newRealRoster(t, realEnsemble("everything", over.source(t, servers, mcpadapter.ClientOptions{})))
			r.offers(t, everythingTools...)
			r.says(t, "everything__echo", `{"message":"hello"}`, "Echo: hello")
			r.says(t, "everything__trigger-elicitation-request", `{}`, "declined")
		})
	}
}

// TestRealListChanged: the server adds tools right after the handshake and reports it;
// over streamable HTTP it does so before a client can listen.
func TestRealListChanged(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	for _, over := range everythingOver {
		if over.name == "http" {
			continue
		}
		t.Run(over.name, func(t *testing.T) {
			c, err := over.source(t, servers, mcpadapter.ClientOptions{Roots: []mcpadapter.Root{{URI: "file:///srv"}}}).Open(atLast(t))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(atLast(t))
			mcptest.Await(t, "a change of the tools", c.Changed())
		})
	}
}

// TestRealReader reads resources and prompts.
func TestRealReader(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	for _, over := range everythingOver {
		t.Run(over.name, func(t *testing.T) {
			c, err := over.source(t, servers, mcpadapter.ClientOptions{}).Open(atLast(t))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close(atLast(t))
			everythingReads(t, c)
		})
	}
}

// TestRealSubscription: the server reports updates of subscribed resources.
func TestRealSubscription(t *testing.T) {
	t.Parallel()
	servers := realservers.Need(t)
	for _, over := range everythingOver {
		t.Run(over.name, func(t *testing.T) {
			r := newRealRoster(t, realEnsemble("everything", over.source(t, servers, mcpadapter.ClientOptions{})))
			const uri = "demo://resource/dynamic/text/1"
			ctx, cancel := context.WithTimeout(atLast(t), mcptest.Patience)
			defer cancel()
			updates := r.Watch(ctx)
			stop, err := r.Subscribe(ctx, uri)
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			r.says(t, "everything__toggle-subscriber-updates", `{}`, "Started")
			for news := range updates {
				if news == (ensemble.News{Ensemble: "everything", Kind: ensemble.ResourceUpdated, URI: uri}) {
					return
				}
			}
			t.Error("no word of an update")
		})
	}
}

func everythingReads(t *testing.T, c ensemble.Connection) {
	reader := c.(ensemble.Library)
	links, err := reader.Resources(atLast(t))
	if err != nil || len(links) != 7 {
		t.Fatalf("%d resources, want 7: %v", len(links), err)
	}
	contents, err := reader.Read(atLast(t), links[0].URI)
	if err != nil || len(contents) != 1 || contents[0].Text == "" {
		t.Errorf("%s holds %v, %v", links[0].URI, contents, err)
	}
	contents, err = reader.Read(atLast(t), "demo://resource/dynamic/blob/1")
	if err != nil || len(contents) != 1 || len(contents[0].Blob) == 0 {
		t.Errorf("the binary resource holds %v, %v", contents, err)
	}
	if _, err := reader.Read(atLast(t), "demo://nothing"); mcptest.CodeOf(err) != invoker.NotFound {
		t.Errorf("a resource that is not there: %v", err)
	}
	templates, err := reader.Templates(atLast(t))
	if err != nil || len(templates) != 2 {
		t.Errorf("templates %v, %v", templates, err)
	}
	found, err := reader.Complete(atLast(t), &ensemble.CompletionRequest{Prompt: "completable-prompt", Argument: "department", Value: "E"})
	if err != nil || found == nil || !slices.Contains(found.Values, "Engineering") {
		t.Errorf("completions %+v, %v", found, err)
	}
	prompts, err := reader.Prompts(atLast(t))
	if err != nil || len(prompts) != 4 {
		t.Errorf("prompts %v, %v", prompts, err)
	}
	got, err := reader.Get(atLast(t), "args-prompt", map[string]string{"city": "Oslo"})
	if err != nil || len(got.Messages) == 0 || !strings.Contains(canister.TextOf(got.Messages[0].Content), "Oslo") {
		t.Errorf("the prompt is %v, %v", got, err)
	}
}
