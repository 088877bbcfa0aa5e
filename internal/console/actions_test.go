// SPDX-License-Identifier: Apache-2.0

package console_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse/conversetest"
	"github.com/consort-go/consort/converse/engine"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/internal/console"
	"github.com/consort-go/consort/internal/testing/consolestage"
	"github.com/consort-go/consort/invoker"
)

var formIDs = regexp.MustCompile(`name="form_id" value="([^"]+)"`)

// formID returns the ID of the form of a page.
func formID(t *testing.T, page string) string {
	t.Helper()
	found := formIDs.FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("the page has no form with an identity:\n%s", page)
	}
	return found[1]
}

// messages returns the texts of the messages of a person in a conversation.
func messages(t *testing.T, store history.Store, id string) (said []string) {
	t.Helper()
	for one, err := range store.Read(t.Context(), id, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if user, ok := one.(canister.User); ok {
			said = append(said, canister.TextOf(user.Content))
		}
	}
	return said
}

// A form that a browser sends twice, such as after a double click, begins one conversation, sends one message
// and makes one call. A form with another text, from a page that came back, is sent too.
func TestSentTwice(t *testing.T) {
	var calls atomic.Int32
	pay, err := invoker.New("pay", "Pay.", func(context.Context, struct{}) (string, error) {
		return fmt.Sprint("paid ", calls.Add(1)), nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := consolestage.Start(t, consolestage.Options{Tools: []invoker.Invoker{pay}, Lines: []conversetest.Line{{Text: "One."},
		{Text: "Two."}, {Text: "Three."}}})
	ada := s.Login(t, consolestage.Ada)
	twice := func(path string, fields ...string) (replies [2]consolestage.Reply) {
		var both sync.WaitGroup
		for i := range replies {
			both.Go(func() { replies[i] = ada.Post(path, fields...) })
		}
		both.Wait()
		return replies
	}
	begun := twice("/conversations", "form_id", formID(t, ada.Get("/conversations").Text), "message", "Do it.")
	at := begun[0].Header.Get("Location")
	if other := begun[1].Header.Get("Location"); at == "" || at != other {
		t.Fatalf("two conversations begin: %q and %q", at, other)
	}
	path := strings.TrimPrefix(at, "/console")
	until(t, s, ada, path, "One.")
	form, id := formID(t, ada.Get(path).Text), strings.TrimPrefix(path, "/conversations/")
	for _, reply := range twice(path+"/send", "form_id", form, "message", "And now?") {
		if reply.StatusCode != http.StatusSeeOther {
			t.Errorf("%s:\n%s", reply.Status, reply.Text)
		}
	}
	until(t, s, ada, path, "Two.")
	ada.Post(path+"/send", "form_id", form, "message", "And then?")
	until(t, s, ada, path, "Three.")
	if said := strings.Join(messages(t, s.Store, id), " "); said != "Do it. And now? And then?" {
		t.Errorf("the messages are %s", said)
	}
	form = formID(t, ada.Get("/tools/local__pay").Text)
	replies := twice("/tools/local__pay", "form_id", form, "form", "fields")
	if texts := replies[0].Text + replies[1].Text; calls.Load() != 1 || !strings.Contains(texts, "paid 1") || !strings.Contains(texts,
		"was sent already") {
		t.Errorf("%d calls:\n%s", calls.Load(), texts)
	}
	if page := ada.Post("/tools/local__pay", "form_id", formID(t, ada.Get("/tools/local__pay").Text), "form",
		"fields").Text; !strings.Contains(page, "paid 2") {
		t.Errorf("another call:\n%s", page)
	}
}

// A message that cannot be sent is not lost: the page has it in its form.
func TestUnsentMessageStays(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{{Calls: []conversetest.Call{{Name: "local__edit_file",
		Arguments: `{}`}}}}})
	ada := s.Login(t, consolestage.Ada)
	path := begun(t, s, ada, "May this call be made?")
	form := formID(t, ada.Get(path).Text)
	reply := ada.Post(path+"/send", "form_id", form, "message", "A long text,\nof two lines.")
	if !strings.Contains(reply.Text, "A long text,\nof two lines.</textarea>") || !strings.Contains(reply.Text, "waits for an answer") ||
		formID(t, reply.Text) != form {
		t.Errorf("the page lacks the text, the reason or the form:\n%s", reply.Text)
	}
	if page := ada.Get(path).Text; strings.Contains(page, "A long text") {
		t.Errorf("it is on the next page too:\n%s", page)
	}
	reply = ada.Post(path+"/send", "message", "It is "+consolestage.Secret)
	if strings.Contains(reply.Text, consolestage.Secret) || strings.Contains(reply.Text, "It is") {
		t.Errorf("the form has a secret, or a mask that would be sent:\n%s", reply.Text)
	}
	s.Console.Begin = func(context.Context, string, canister.User) error { return io.ErrUnexpectedEOF }
	reply = ada.Post("/conversations", "message", "A new text.")
	if !strings.Contains(reply.Text, "A new text.</textarea>") || !strings.Contains(reply.Text, "unexpected EOF") {
		t.Errorf("a new conversation that cannot begin:\n%s", reply.Text)
	}
}

// late is an engine that stores messages and cannot reach its workers.
type late struct{ *engine.Local }

func (l late) Send(ctx context.Context, id string, said canister.User) error {
	if err := l.Local.Send(ctx, id, said); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", engine.ErrKept, context.DeadlineExceeded)
}

// A message that is stored and takes effect later is not called unsent.
func TestKeptMessage(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{{Text: "One."}, {Text: "Two."}}})
	s.Console.Engine = late{s.Engine}
	ada := s.Login(t, consolestage.Ada)
	path := begun(t, s, ada, "One.")
	ada.Get(path) // with the notice
	ada.Post(path+"/send", "message", "And now?")
	page := ada.Get(path).Text
	if !strings.Contains(page, "it need not be sent again") || strings.Contains(page, "send it again") || strings.Contains(page,
		"notice failed") {
		t.Errorf("the page says:\n%s", page)
	}
}

// A conversation that was deleted meanwhile does not begin anew with a message.
func TestMessageToDeleted(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{{Text: "One."}, {Text: "Two."}}})
	ada := s.Login(t, consolestage.Ada)
	path := begun(t, s, ada, "One.")
	id := strings.TrimPrefix(path, "/conversations/")
	s.Console.Engine = deleting{s.Engine, s.Store}
	ada.Post(path+"/send", "message", "And now?")
	if _, err := s.Store.Info(t.Context(), id); err == nil {
		t.Errorf("it begins anew with %q", messages(t, s.Store, id))
	}
}

// deleting is an engine whose conversation is deleted just before a message.
type deleting struct {
	*engine.Local
	store history.Store
}

func (d deleting) Send(ctx context.Context, id string, said canister.User) error {
	if err := d.store.Delete(ctx, id, history.AnyLength); err != nil {
		return err
	}
	return d.Local.Send(ctx, id, said)
}

// A fork in the middle of a turn is not shown as running, and who may act on it resumes it.
func TestResume(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{{Text: "One."}, {Text: "It goes on."}}})
	ada, ops := s.Login(t, consolestage.Ada), s.Login(t, consolestage.Ops)
	path := begun(t, s, ada, "One.")
	fork := strings.TrimPrefix(ada.Post(path+"/fork", "at", "1").Header.Get("Location"), "/console")
	for who, p := range map[string]*consolestage.Person{"the owner": ada, "an operator": ops} {
		now := p.Get("/").Text
		_, left, isLeft := strings.Cut(now, "Not running here")
		if !isLeft || !strings.Contains(left, fork+`"`) || !strings.Contains(left, fork+"/resume") || !strings.Contains(now,
			"No turn is running.") {
			t.Errorf("the page of %s:\n%s", who, now)
		}
	}
	if page := s.Login(t, consolestage.Aud).Get("/").Text; !strings.Contains(page, "Not running here") || strings.Contains(page, "/resume") {
		t.Errorf("the page of an auditor:\n%s", page)
	}
	if reply := s.Login(t, consolestage.Ben).Post(fork + "/resume"); reply.StatusCode != http.StatusForbidden {
		t.Errorf("a reader resumes: %s", reply.Status)
	}
	if page := ada.Get(fork).Text; !strings.Contains(page, "Resume the turn") {
		t.Errorf("the page of the fork:\n%s", page)
	}
	if reply := ops.Post(fork + "/resume"); reply.Header.Get("Location") != "/console"+fork {
		t.Errorf("%s to %s:\n%s", reply.Status, reply.Header.Get("Location"), reply.Text)
	}
	until(t, s, ada, fork, "It goes on.")
	if page := ada.Get("/").Text; strings.Contains(page, "Not running here") {
		t.Errorf("afterwards:\n%s", page)
	}
	if said := messages(t, s.Store, strings.TrimPrefix(fork, "/conversations/")); len(said) != 1 {
		t.Errorf("the messages are %q", said)
	}
}

// A page that says that a turn does not run here shows that another person has resumed it, before the turn is over.
func TestResumedElsewhere(t *testing.T) {
	hold := make(chan struct{})
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{{Text: "One."}, {Text: "It goes on.", Wait: hold}}})
	ada := s.Login(t, consolestage.Ada)
	fork := strings.TrimPrefix(ada.Post(begun(t, s, ada, "One.")+"/fork", "at", "1").Header.Get("Location"), "/console")
	if page := ada.Get(fork).Text; !strings.Contains(page, "Not running here") {
		t.Fatalf("the page:\n%s", page)
	}
	response := ada.Open(http.MethodGet, fork+"/live?after=1", nil, "Accept", "text/event-stream")
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "event: begin") {
		continue
	}
	s.Login(t, consolestage.Ops).Post(fork + "/resume")
	for lines.Scan() {
		if _, data, ok := strings.Cut(lines.Text(), "data: "); ok && strings.Contains(data, `"actions"`) {
			if strings.Contains(data, "Not running here") {
				t.Errorf("the state: %s", data)
			}
			close(hold)
			return
		}
		if strings.HasPrefix(lines.Text(), "event: ended") {
			break
		}
	}
	t.Error("the stream has no state before the end of the turn")
}

// A person of whom the server knows no owner begins no conversation: it would belong to nobody.
func TestNoOwner(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Lines: []conversetest.Line{{Text: "One."}}})
	caller := s.Console.Caller
	s.Console.Caller = func(ctx context.Context) (console.Caller, error) {
		who, err := caller(ctx)
		who.Owner = ""
		return who, err
	}
	ada := s.Login(t, consolestage.Ada)
	ada.Post("/conversations", "message", "Do it.")
	if page := ada.Get("/conversations").Text; !strings.Contains(page, "needs an owner") || strings.Contains(page, "New conversation") {
		t.Errorf("the page:\n%s", page)
	}
	for info := range s.Store.List(t.Context(), history.Filter{}) {
		t.Errorf("there is %+v", info)
	}
}

// strict is a store that describes nothing after the end of a context.
type strict struct{ history.Store }

func (s strict) Describe(ctx context.Context, id string, change history.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return s.Store.Describe(ctx, id, change)
}

// sending is an engine that tells which conversations got a message.
type sending struct {
	*engine.Local
	sent chan string
}

func (s sending) Send(ctx context.Context, id string, said canister.User) error {
	err := s.Local.Send(ctx, id, said)
	s.sent <- id
	return err
}

// A conversation begins as a whole if the person closes the page while it is sent.
func TestPageIsClosed(t *testing.T) {
	s := consolestage.Start(t, consolestage.Options{Store: strict{history.NewMemory()}, Lines: []conversetest.Line{{Text: "One."}}})
	ada := s.Login(t, consolestage.Ada)
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ctx, leave := context.WithCancel(limited)
	requests, sent, begin, identify := make(chan context.Context, 1), make(chan string, 1), s.Console.Begin, s.Console.Identify
	s.Console.Engine = sending{s.Engine, sent}
	s.Console.Identify = func(next http.Handler) http.Handler {
		return identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests <- r.Context()
			next.ServeHTTP(w, r)
		}))
	}
	s.Console.Begin = func(ctx context.Context, id string, said canister.User) error {
		err := begin(ctx, id, said)
		leave()
		<-(<-requests).Done()
		return err
	}
	form := url.Values{"form_token": {ada.Form}, "message": {"Do it."}}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/conversations", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Cookie", ada.Cookie)
	if response, err := http.DefaultTransport.RoundTrip(request); err == nil {
		response.Body.Close()
		t.Fatal("the page was not closed")
	}
	select {
	case id := <-sent:
		if info, err := s.Store.Info(t.Context(), id); err != nil || info.Owner != "owner-ada" {
			t.Errorf("%+v, %v", info, err)
		}
	case <-limited.Done():
		t.Error("the message was not sent")
	}
}

// away is a store that cannot be read after a number of canisters.
type away struct {
	history.Store
	after atomic.Int32 // negative if it works
}

func (a *away) Info(ctx context.Context, id string) (history.Info, error) {
	if a.after.Load() == 0 {
		return history.Info{}, io.ErrUnexpectedEOF
	}
	return a.Store.Info(ctx, id)
}

func (a *away) Read(ctx context.Context, id string, after int) iter.Seq2[canister.Canister, error] {
	return func(yield func(canister.Canister, error) bool) {
		n := int32(0)
		for one, err := range a.Store.Read(ctx, id, after) {
			if n++; a.after.Load() >= 0 && n > a.after.Load() {
				yield(nil, io.ErrUnexpectedEOF)
				return
			}
			if !yield(one, err) {
				return
			}
		}
	}
}

// A store that is away does not look like a conversation that does not exist, and what it cuts off does not
// look complete.
func TestStoreAway(t *testing.T) {
	store := &away{Store: history.NewMemory()}
	store.after.Store(-1)
	s := consolestage.Start(t, consolestage.Options{Store: store})
	long := canister.User{Head: canister.Head{ID: "u"}, Content: canister.Texts(strings.Repeat("long ", 100_000))}
	stored(t, store, "plan", "owner-ada", long, canister.Assistant{Head: canister.Head{ID: "a"}, Finish: canister.FinishStop})
	ada := s.Login(t, consolestage.Ada)
	store.after.Store(1)
	response := ada.Open(http.MethodGet, "/conversations/plan/raw", url.Values{})
	defer response.Body.Close()
	if text, err := io.ReadAll(response.Body); err == nil {
		t.Errorf("the file looks complete, with %d bytes", len(text))
	}
	store.after.Store(0)
	for _, name := range []string{"plan", "none"} {
		if reply := ada.Get("/conversations/" + name); reply.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("%s: %s\n%s", name, reply.Status, reply.Text)
		}
	}
}
