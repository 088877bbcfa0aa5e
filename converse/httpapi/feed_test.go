// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/httpapi"
)

// streamed is one server-sent event.
type streamed struct{ id, name, data string }

// readStream passes the events of a stream until do returns false, and checks that they are as
// described.
func readStream(response *http.Response, do func(streamed) bool) error {
	defer response.Body.Close()
	var event streamed
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			event.id = value
		case "event":
			event.name = value
		case "data":
			event.data = value
		case "":
			if event.data == "" { // OpenAI's clients for Python and Go would read it as an event
				return errors.New("a blank line does not end an event with data")
			}
			if err := checkEvent(response.Request, event); err != nil {
				return err
			}
			if !do(event) {
				return nil
			}
			event = streamed{}
		}
	}
	return lines.Err()
}

// client is a client of a stream that shows text as it comes.
type client struct {
	last    string // id
	seen    map[string]int
	texts   []string // of the canisters
	partial string   // of the message that is being written
	attempt int64
	next    int // index of the delta that follows
	ended   bool
}

// take takes an event. It returns an error if the stream breaks its promises.
func (c *client) take(e streamed) error {
	if e.id != "" {
		if c.seen[e.id]++; c.seen[e.id] > 1 {
			return fmt.Errorf("the event %s came twice", e.id)
		}
		c.last = e.id
	}
	switch e.name {
	case "canister":
		var form struct {
			Position int
			Canister struct {
				Kind    canister.Kind
				Content []struct{ Text string }
			}
		}
		if err := json.Unmarshal([]byte(e.data), &form); err != nil {
			return err
		}
		if form.Position != len(c.texts)+1 {
			return fmt.Errorf("position %d after %d canisters", form.Position, len(c.texts))
		}
		text := ""
		for _, piece := range form.Canister.Content {
			text += piece.Text
		}
		if form.Canister.Kind == canister.KindAssistant && !strings.HasPrefix(text, c.partial) {
			return fmt.Errorf("the deltas %q are not the beginning of the message %q", c.partial, text)
		}
		c.texts, c.partial, c.attempt, c.next, c.ended = append(c.texts, text), "", 0, 0, false
	case "delta":
		var form engine.Delta
		if err := json.Unmarshal([]byte(e.data), &form); err != nil {
			return err
		}
		return c.delta(form)
	case "ended":
		c.ended = true
	case "error":
		return errors.New(e.data)
	}
	return nil
}

// delta takes a piece of a message.
func (c *client) delta(d engine.Delta) error {
	if d.Attempt != c.attempt {
		c.attempt, c.next, c.partial = d.Attempt, 0, ""
	}
	if d.Index < c.next {
		return fmt.Errorf("delta %d after %d", d.Index, c.next-1)
	}
	c.partial += d.Text()
	c.next = d.Index + 1
	return nil
}

// TestCutStreams: clients whose streams are cut at random places, and which continue at one
// of several servers, see only beginnings of messages and end with exactly the text of the log. CONSORT_CUT_STREAMS is the number
// of clients.
func TestCutStreams(t *testing.T) {
	t.Parallel()
	clients, err := strconv.Atoi(cmp.Or(os.Getenv("CONSORT_CUT_STREAMS"), "200"))
	if err != nil {
		t.Fatal(err)
	}
	store := history.NewMemory()
	slow := func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		words := lastText(request)
		for n := range 50 { // no two parts of it are equal
			words += fmt.Sprintf(" %d", n)
		}
		say(request, words, func(e converse.ModelEvent, err error) bool {
			<-time.After(200 * time.Microsecond) // a model takes time between two words
			return yield(e, err)
		})
	}
	many := func(o *httpapi.Options) { o.MaxStreams = clients + 1 }
	stream := engine.NewStream()
	at := serveStore(t, store, stream, slow, nil, many)
	var also []*served
	for _, other := range []engine.Stream{stream, nil} { // other machines, which do not run the conversation
		also = append(also, serveStore(t, store, other, slow, nil, many))
	}
	const turns, group = 4, 50
	for begun := 0; begun < clients; begun += group {
		id := at.create("begin")
		var reading sync.WaitGroup
		for n := range min(group, clients-begun) {
			random := rand.New(rand.NewPCG(uint64(begun), uint64(n)))
			reading.Go(func() { cutClient(t, append(also, at), id, 2*turns, random) })
		}
		for turn := 1; turn < turns; turn++ {
			at.want(http.StatusAccepted, "POST", "/api/conversations/"+id+"/messages", map[string]any{"message": fmt.Sprint("turn ", turn)})
		}
		reading.Wait()
		if t.Failed() {
			return
		}
	}
}

// cutClient reads a conversation of some length, with cuts, and compares it with the log.
func cutClient(t *testing.T, servers []*served, id string, length int, random *rand.Rand) {
	c := &client{seen: map[string]int{}}
	deadline := time.Now().Add(5 * time.Minute)
	for len(c.texts) < length || !c.ended {
		if time.Now().After(deadline) {
			t.Errorf("only %d canisters came", len(c.texts))
			return
		}
		s := servers[random.IntN(len(servers))]
		cut := 1 + random.IntN(40)
		var broken error
		err := readStream(s.request("GET", "/api/conversations/"+id+"/events", nil, "Last-Event-ID", c.last), func(e streamed) bool {
			broken = c.take(e)
			cut--
			return broken == nil && cut > 0 && (len(c.texts) < length || !c.ended)
		})
		if err = cmp.Or(broken, err); err != nil {
			t.Errorf("the stream after %q: %v", c.last, err)
			return
		}
	}
	log, err := history.From(context.Background(), servers[0].store, id, 0)
	if err != nil {
		t.Error(err)
		return
	}
	if len(log) != len(c.texts) {
		t.Errorf("%d canisters came, of %d", len(c.texts), len(log))
		return
	}
	for i, text := range c.texts {
		if want := canister.TextOf(canister.ContentOf(log[i])); text != want {
			t.Errorf("canister %d is %q, in the log %q", i, text, want)
		}
	}
}

// TestFeedKeepsDeltas: a reader that was cut off in a message gets the deltas that it has
// missed, each once, and an end that it has seen does not come again.
func TestFeedKeepsDeltas(t *testing.T) {
	release := make(chan struct{})
	m := func(ctx context.Context, request *converse.Request, yield func(converse.ModelEvent, error) bool) {
		for i := range 6 {
			yield(converse.Delta{Text: strconv.Itoa(i)}, nil)
		}
		select {
		case <-release:
		case <-ctx.Done():
		}
		say(request, "012345", func(e converse.ModelEvent, err error) bool {
			if _, is := e.(converse.Delta); is {
				return true
			}
			return yield(e, err)
		})
	}
	s := serve(t, m, nil, nil)
	id := s.create("count")
	read := func(after httpapi.Cursor, until func(httpapi.Event) bool) (text string, last httpapi.Cursor) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for event, err := range s.feed.Events(ctx, id, after) {
			if err != nil {
				t.Fatal(err)
			}
			if d, is := event.Event.(engine.Delta); is {
				text += d.Text()
			}
			if last = event.ID; until(event) {
				break
			}
		}
		return text, last
	}
	whole, cursor := "", httpapi.Cursor{}
	for len(whole) < 6 {
		text, last := read(cursor, func(e httpapi.Event) bool { return e.Name == "delta" })
		whole, cursor = whole+text, last
	}
	if whole != "012345" {
		t.Errorf("the deltas are %q", whole)
	}
	close(release)
	_, end := read(cursor, func(e httpapi.Event) bool { return e.Name == "ended" })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	for event, err := range s.feed.Events(ctx, id, end) {
		if err == nil {
			t.Errorf("%s came again", event.ID)
		}
	}
}

// TestManyReaders: the readers of a conversation share a watch.
func TestManyReaders(t *testing.T) {
	s := serve(t, echo, nil, nil)
	id := s.create("hello")
	var reading sync.WaitGroup
	for range 100 {
		reading.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			n := 0
			for event, err := range s.feed.Events(ctx, id, httpapi.Cursor{}) {
				if err != nil {
					t.Error(err)
					return
				}
				if event.Name == "canister" {
					n++
				}
				if event.Name == "ended" && n == 2 {
					return
				}
			}
		})
	}
	reading.Wait()
	if n := httpapi.Topics(s.feed); n != 1 {
		t.Errorf("%d watches", n)
	}
}

// TestLateReader: a reader that begins before the events that its feed has gets all of them,
// and one that has seen an end elsewhere does not get it again.
func TestLateReader(t *testing.T) {
	store := history.NewMemory()
	s := serveStore(t, store, nil, echo, nil, nil)
	id := s.create("hello")
	s.ended(id, 0)
	s.want(http.StatusAccepted, "POST", "/api/conversations/"+id+"/messages", object{"message": "more"})
	s.ended(id, 3)
	other := serveStore(t, store, nil, echo, nil, nil)
	read := func(after string, n int) (ids []string) {
		t.Helper()
		cursor, err := httpapi.ParseCursor(after)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		end := func() {
			if len(ids) == n {
				time.AfterFunc(100*time.Millisecond, cancel) // for one that should not come
			}
		}
		end()
		for event, err := range other.feed.Events(ctx, id, cursor) {
			if err == nil {
				ids = append(ids, event.ID.String())
				end()
			}
		}
		return ids
	}
	for after, want := range map[string]string{
		"": "1 2 2-end 3 4 4-end", "2": "2-end 3 4 4-end", "2-end": "3 4 4-end", "2.1.3-end": "3 4 4-end",
		"3.1.0": "4 4-end", "4": "4-end", "4.1.2-end": "",
	} {
		if got := strings.Join(read(after, len(strings.Fields(want))), " "); got != want {
			t.Errorf("after %q came %q, want %q", after, got, want)
		}
	}
}

func TestCursor(t *testing.T) {
	for _, text := range []string{"0", "12", "12.3.7", "12-end", "12.3.7-0badcafe"} {
		c, err := httpapi.ParseCursor(text)
		if err != nil || c.String() != text {
			t.Errorf("%q is read as %q, %v", text, c, err)
		}
	}
	for _, text := range []string{
		"-", "x", "-1", "1.2", "1.2.3.4", "01", "1-", "1-0BADCAFE",
		"99999999999999999999", "4294967296", strings.Repeat("1", 100), "1.2.3-end-end", " 1",
	} {
		if c, err := httpapi.ParseCursor(text); err == nil {
			t.Errorf("%q is read as %q", text, c)
		}
	}
}

func FuzzCursor(f *testing.F) {
	for _, text := range []string{"", "12.3.7-0badcafe", "12-end", "1..", "-", "1.2.3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := httpapi.ParseCursor(text)
		if err == nil && text != "" && c.String() != text {
			t.Errorf("%q is read as %q", text, c)
		}
	})
}
