// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
)

// lossy is a stream that loses text.
type lossy struct {
	engine.Stream
	lost     string // the text of a delta that no subscriber gets
	isSilent bool   // the next delta does not count it
	last     string // the text of the last delta
	passed   chan struct{}
}

func (l *lossy) Subscribe(ctx context.Context, conversation string) (<-chan engine.Delta, error) {
	from, err := l.Stream.Subscribe(ctx, conversation)
	if err != nil {
		return nil, err
	}
	to := make(chan engine.Delta)
	go func() {
		defer close(to)
		missed := 0
		for d := range from {
			if d.Text() == l.lost && d.Event != nil {
				if missed++; l.isSilent {
					missed = 0
				}
				continue
			}
			d.Missed, missed = missed, 0
			select {
			case to <- d:
			case <-ctx.Done():
				return
			}
			if d.Text() == l.last {
				l.passed <- struct{}{}
			}
		}
	}()
	return to, nil
}

// words are the deltas of a message.
var words = []string{"one ", "two ", "three ", "four "}

// speaks writes the words, and completes the message when done is closed or has a value.
func speaks(done <-chan struct{}) model {
	return func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		for _, word := range words {
			if !yield(converse.Delta{Text: word}, nil) {
				return
			}
		}
		select {
		case <-done:
		case <-ctx.Done():
			yield(nil, ctx.Err())
			return
		}
		reply := canister.Assistant{Head: canister.Head{ID: request.NewID()}, Content: canister.Texts(strings.Join(words, "")), Finish: canister.FinishStop}
		yield(converse.Reply{Message: reply}, nil)
	}
}

// A client never gets text that stands after a place where deltas were lost: what it has of a message
// that is being written is a beginning of it, and the whole text follows.
func TestLostDeltas(t *testing.T) {
	apis := map[string]func(*served) (deltas, whole string){
		"conversations": (*served).spokenEvents, "Chat Completions": (*served).spokenChat,
		"Responses": (*served).spokenResponse, "AG-UI": (*served).spokenRun,
	}
	for name, read := range apis {
		for i, lost := range []string{words[0], words[1], words[2], words[1]} {
			t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) {
				l := &lossy{Stream: engine.NewStream(), lost: lost, isSilent: i == 3, last: words[3], passed: make(chan struct{})}
				s := serveStore(t, history.NewMemory(), l, speaks(l.passed), nil, nil)
				deltas, whole := read(s)
				before, _, _ := strings.Cut(strings.Join(words, ""), lost)
				if whole != strings.Join(words, "") || !strings.HasPrefix(before, deltas) && deltas != whole {
					t.Errorf("the deltas are %q, the text %q", deltas, whole)
				}
			})
		}
	}
}

// spokenEvents returns the text of the deltas of a conversation, and of its message.
func (s *served) spokenEvents() (deltas, whole string) {
	s.t.Helper()
	at := "/api/conversations/" + s.create("speak") + "/events"
	err := readStream(s.request("GET", at, nil), func(e streamed) bool {
		var form struct {
			Canister struct {
				Kind    canister.Kind
				Content []struct{ Text string }
			}
			Event struct{ Text string }
		}
		if err := json.Unmarshal([]byte(e.data), &form); err != nil {
			s.t.Fatal(err)
		}
		if deltas += form.Event.Text; form.Canister.Kind == canister.KindAssistant {
			whole = form.Canister.Content[0].Text
		}
		return e.name != "ended"
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return deltas, whole
}

// spokenChat returns the text of the chunks of a chat completion.
func (s *served) spokenChat() (deltas, whole string) {
	s.t.Helper()
	for _, e := range s.stream("/v1/chat/completions", object{"messages": []object{user("speak")}, "stream": true}) {
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
			Error   json.RawMessage
		}
		if e.data == "[DONE]" {
			return deltas, deltas
		}
		if err := json.Unmarshal([]byte(e.data), &chunk); err != nil || chunk.Error != nil {
			s.t.Fatalf("after %q came %s, %v", deltas, e.data, err)
		}
		deltas += chunk.Choices[0].Delta.Content
	}
	return deltas, ""
}

// spokenResponse returns the text of the deltas of a response, and of its item.
func (s *served) spokenResponse() (deltas, whole string) {
	s.t.Helper()
	for _, e := range s.stream("/v1/responses", object{"input": "speak", "stream": true}) {
		var form struct{ Delta, Text string }
		switch e.name {
		case "response.output_text.delta", "response.output_text.done":
			if err := json.Unmarshal([]byte(e.data), &form); err != nil {
				s.t.Fatal(err)
			}
			deltas, whole = deltas+form.Delta, form.Text
		case "response.failed":
			s.t.Fatalf("after %q came %s", deltas, e.data)
		}
	}
	return deltas, whole
}

// spokenRun returns the text of a run of AG-UI.
func (s *served) spokenRun() (deltas, whole string) {
	s.t.Helper()
	_, text, last := s.run(object{"threadId": "t", "messages": []object{{"id": "m1", "role": "user", "content": "speak"}}})
	if last["type"] != "RUN_FINISHED" {
		s.t.Fatalf("after %q came %v", text, last)
	}
	return text, text
}

// A reader that comes in the middle of a message gets no text of it until it is complete.
func TestReaderInTheMiddle(t *testing.T) {
	release := make(chan struct{})
	l := &lossy{Stream: engine.NewStream(), last: words[3], lost: "none", passed: make(chan struct{}, 2)}
	s := serveStore(t, history.NewMemory(), l, speaks(release), nil, nil)
	id := s.create("speak")
	<-l.passed
	late := httpapi.NewFeed(s.engine, s.store)
	t.Cleanup(late.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var got []string
	for event, err := range late.Events(ctx, id, httpapi.Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, event.Name); event.ID.Position == 1 && event.Name == "canister" {
			if err := l.Publish(ctx, id, middle(ctx, t, s.store, id)); err != nil {
				t.Fatal(err)
			}
			<-l.passed
			close(release)
		}
		if event.Name == "ended" {
			break
		}
	}
	if text := strings.Join(got, " "); text != "canister canister ended" {
		t.Errorf("got %s", text)
	}
}

// middle returns a delta after the first words of a message.
func middle(ctx context.Context, t *testing.T, store history.Store, id string) engine.Delta {
	t.Helper()
	log, err := history.From(ctx, store, id, 0)
	if err != nil {
		t.Fatal(err)
	}
	event := json.RawMessage(`{"event":"text_delta","text":"` + words[3] + `"}`)
	return engine.Delta{Turn: log[0].Header().ID, Attempt: 1 << 50, Index: 4, Position: 1, Event: event}
}

// TestSlowReader: a reader that is behind when a feed drops the oldest text of a long message gets
// no more of its text until it is complete.
func TestSlowReader(t *testing.T) {
	const size, count = 64 << 10, 40
	begin, written, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	whole := ""
	for i := range count {
		whole += strings.Repeat(strconv.Itoa(i%10), size)
	}
	s := serve(t, func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		select {
		case <-begin: // the feed gets all deltas
		case <-ctx.Done():
		}
		for i := range count {
			yield(converse.Delta{Text: whole[i*size : (i+1)*size]}, nil)
		}
		close(written)
		select {
		case <-done:
		case <-ctx.Done():
		}
		head := canister.Head{ID: request.NewID()}
		yield(converse.Reply{Message: canister.Assistant{Head: head, Content: canister.Texts(whole), Finish: canister.FinishStop}}, nil)
	}, nil, nil)
	id := s.create("speak")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	text := ""
	for event, err := range s.feed.Events(ctx, id, httpapi.Cursor{}) {
		if err != nil {
			t.Fatal(err)
		}
		switch e := event.Event.(type) {
		case engine.Added:
			if e.Position == 1 {
				close(begin)
				<-written
				time.AfterFunc(100*time.Millisecond, func() { close(done) })
			}
		case engine.Delta:
			text += e.Text()
		case engine.Ended:
			if !strings.HasPrefix(whole, text) {
				t.Errorf("%d bytes of text are not a beginning of the message", len(text))
			}
			return
		}
	}
}

// blocked is a response whose client reads nothing before a channel is closed.
type blocked struct {
	*httptest.ResponseRecorder
	until <-chan struct{}
}

func (b *blocked) Write(p []byte) (int, error) {
	<-b.until
	return b.ResponseRecorder.Write(p)
}

// TestSlowChat: a client of OpenAI's API that reads nothing until a long message is written gets all of it.
func TestSlowChat(t *testing.T) {
	const size, count = 64 << 10, 40
	written, done := make(chan struct{}), make(chan struct{})
	whole := ""
	for i := range count {
		whole += strings.Repeat(strconv.Itoa(i%10), size)
	}
	s := serve(t, func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		for i := range count {
			yield(converse.Delta{Text: whole[i*size : (i+1)*size]}, nil)
		}
		close(written)
		select {
		case <-done:
		case <-ctx.Done():
		}
		yield(converse.Reply{Message: canister.Assistant{Head: canister.Head{ID: request.NewID()}, Content: canister.Texts(whole), Finish: canister.FinishStop}}, nil)
	}, nil, nil)
	w := &blocked{httptest.NewRecorder(), written}
	request := httptest.NewRequest("POST", "http://localhost/v1/chat/completions", strings.NewReader(`{"stream":true,"messages":[{"role":"user","content":"x"}]}`))
	request.Header.Set("Content-Type", "application/json")
	time.AfterFunc(100*time.Millisecond, func() { close(done) })
	httpapi.New(s.feed, nil).ServeHTTP(w, request)
	text := ""
	for line := range strings.SplitSeq(w.Body.String(), "\n") {
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if data, is := strings.CutPrefix(line, "data: {"); is && json.Unmarshal([]byte("{"+data), &chunk) == nil && len(chunk.Choices) > 0 {
			text += chunk.Choices[0].Delta.Content
		}
	}
	if text != whole || !strings.HasSuffix(w.Body.String(), "data: [DONE]\n\n") {
		end := w.Body.String()
		t.Errorf("%d of %d bytes, then %s", len(text), len(whole), end[max(0, len(end)-300):])
	}
}
