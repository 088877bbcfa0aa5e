// SPDX-License-Identifier: Apache-2.0

package temporal

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/consort-go/consort/canister"
	"github.com/consort-go/consort/converse"
	"github.com/consort-go/consort/converse/history"
	"github.com/consort-go/consort/converse/history/files"
	"github.com/consort-go/consort/converse/history/postgres"
	"github.com/consort-go/consort/converse/temporal/internal/temporalserver"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/ensemble/ensembletest/faultserver"
	"github.com/consort-go/consort/internal/testing/conversekit"
	"github.com/consort-go/consort/internal/testing/killtable"
	"github.com/consort-go/consort/mcpadapter"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

func TestMain(m *testing.M) {
	killtable.Main(map[string]killtable.Engine{"temporal": killedWorker, "program": killtable.Program(killedWorker)})
	if form := os.Getenv(workerVariable); form != "" {
		os.Exit(beWorker(form))
	}
	os.Exit(m.Run())
}

// startServer starts a server over SQLite and returns its address.
func startServer(t testing.TB) string { return temporalserver.Start(t, temporalserver.SQLite) }

// dial connects to a server, which may just be starting.
func dial(address string) (client.Client, error) {
	var c client.Client
	var err error
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if c, err = client.Dial(client.Options{HostPort: address, Logger: log.NewStructuredLogger(quiet)}); err == nil {
			return c, nil
		}
	}
	return nil, err
}

// workerVariable has the form of a worker that a process of the test binary is.
const workerVariable = "CONSORT_TEMPORAL_TEST_WORKER"

// workerForm are the settings of a worker process.
type workerForm struct {
	Address   string
	Store     string // folder of files
	Tools     string // URL of the MCP server
	Model     string // URL that is asked before each answer
	Heartbeat time.Duration
	Idle      time.Duration
	Grace     time.Duration
	Approve   bool // each call has to be allowed
	Build     string
	Unswept   bool // nothing searches for messages without a notified worker
	Plain     bool // the model and the tool are functions, and the store carries deltas
}

// openStore opens the store of a form.
func (f workerForm) openStore() (history.Store, error) {
	if strings.HasPrefix(f.Store, "postgres:") {
		return postgres.Open(context.Background(), f.Store, nil)
	}
	return files.Open(f.Store, nil)
}

// open makes conversations.
func (f workerForm) open(store history.Store, roster *ensemble.Roster) converse.OpenFunc {
	return func(_ context.Context, id string) (*converse.Conversation, error) {
		opts := &converse.Options{ID: id, Log: store, Instructions: "Follow the instructions."}
		if f.Approve {
			opts.Approve = func(context.Context, converse.Approval) (converse.Decision, error) {
				return converse.Defer(24*time.Hour, ""), nil
			}
		}
		if f.Plain {
			return converse.New(conversekit.Instant("tools__look"), roster, opts), nil
		}
		return converse.New(worked{url: f.Model}, roster, opts), nil
	}
}

// start starts a worker as the form says.
func (f workerForm) start(c client.Client, store history.Store, roster *ensemble.Roster) (*Worker, error) {
	opts := &WorkerOptions{Heartbeat: f.Heartbeat, Idle: f.Idle, Grace: f.Grace, Sweep: time.Second, Backoff: 100 * time.Millisecond}
	if f.Unswept {
		opts.Sweep = -1
	}
	if f.Plain {
		opts.Stream = NewStream(store.(*postgres.Store))
		opts.Sweep = 0 // the default: the cost of a turn is measured
	}
	if f.Build != "" {
		opts.Deployment, opts.Build = "consort", f.Build
	}
	return NewWorker(c, store, f.open(store, roster), opts)
}

// roster has the tools of a form.
func (f workerForm) roster() (*ensemble.Roster, error) {
	if f.Plain {
		return plainRoster()
	}
	return ensemble.NewRoster(ensemble.New("fault", mcpadapter.HTTP(f.Tools, nil), nil))
}

// beWorker is a worker process: it works until its standard input ends.
func beWorker(text string) int {
	var f workerForm
	err := json.Unmarshal([]byte(text), &f)
	if err == nil {
		err = f.work(os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		return 1
	}
	return 0
}

func (f workerForm) work(in io.Reader, out io.Writer) error {
	c, err := dial(f.Address)
	if err != nil {
		return err
	}
	defer c.Close()
	store, err := f.openStore()
	if err != nil {
		return err
	}
	defer store.Close()
	roster, err := f.roster()
	if err != nil {
		return err
	}
	defer roster.Close(context.Background())
	w, err := f.start(c, store, roster)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "ready")
	_, _ = io.Copy(io.Discard, in)
	return w.Close()
}

// process is a worker process.
type process struct {
	*exec.Cmd
	in io.Closer
}

// startWorker starts a worker process and waits until it is at work.
func startWorker(t testing.TB, f workerForm) *process {
	t.Helper()
	form, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), workerVariable+"="+string(form))
	temporalserver.Bind(cmd)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: cmd, in: in}
	t.Cleanup(p.kill)
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready\n" {
		t.Fatalf("the worker said %q: %v", line, err)
	}
	return p
}

// kill is kill -9.
func (p *process) kill() {
	_ = p.Process.Kill()
	_ = p.Wait()
}

// stop lets it end by itself.
func (p *process) stop(t testing.TB) {
	t.Helper()
	_ = p.in.Close()
	if err := p.Wait(); err != nil {
		t.Errorf("the worker ended with %v", err)
	}
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// worked is a model that asks for as many calls as the user's message says, one
// after the other, and answers. Each exchange is a request to the parent, which
// counts it and lets it wait.
type worked struct{ url string }

func (m worked) Exchange(ctx context.Context, request *converse.Request) iter.Seq2[converse.ModelEvent, error] {
	return func(yield func(converse.ModelEvent, error) bool) {
		reply, err := m.reply(ctx, request)
		if err != nil {
			yield(nil, err)
			return
		}
		if yield(converse.Delta{Text: "Well, "}, nil) {
			yield(reply, nil)
		}
	}
}

func (m worked) reply(ctx context.Context, request *converse.Request) (converse.Reply, error) {
	said, calls, results := "", 0, 0
	for _, c := range request.History {
		switch c := c.(type) {
		case canister.User:
			said, results = c.ID, 0
			_, _ = fmt.Sscan(c.Content[0].(canister.TextContent).Text, &calls)
		case canister.Result:
			results++
		}
	}
	if err := m.ask(ctx, fmt.Sprintf("%s/%d", said, results)); err != nil {
		return converse.Reply{}, err
	}
	message := canister.Assistant{Head: canister.Head{ID: request.NewID()}, Finish: canister.FinishStop, Content: canister.Texts("Well, that is done.")}
	if results >= calls {
		return converse.Reply{Message: message}, nil
	}
	message.Finish = canister.FinishInvocations
	return converse.Reply{Message: message, Invocations: []canister.Invocation{{
		Head: canister.Head{ID: request.NewID()}, Message: message.ID, CallID: "call-" + strconv.Itoa(results),
		Name: tools[results%len(tools)], Arguments: fmt.Sprintf(`{"key":"%s/%d"}`, said, results),
	}}}, nil
}

// tools are called by the model in turn.
var tools = []string{"fault__effect", "fault__idempotent_effect"}

// ask waits for the parent's leave.
func (m worked) ask(ctx context.Context, what string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.url, strings.NewReader(what))
	if err != nil {
		return err
	}
	request.Header.Set("Worker", strconv.Itoa(os.Getpid()))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return &converse.ModelError{Message: "the model cannot be reached", Retryable: true, Err: err}
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(response.Body)
		return &converse.ModelError{Message: string(text), Status: response.StatusCode, Retryable: response.StatusCode >= 500}
	}
	return nil
}

// world is the environment of the workers of a test: a server, tools with a ledger, a
// model that counts, a store, and an engine.
type world struct {
	t      *testing.T
	form   workerForm
	client client.Client
	engine *Engine
	store  history.Store
	ledger string                       // directory
	leave  func(what string) <-chan any // what an exchange waits for; nil is nothing
	status int                          // of the model's server, if not 200

	unheard atomic.Int64 // messages of which the server was not told in time

	mu    sync.Mutex
	asked []question
}

// question is an exchange with the model.
type question struct {
	what   string
	worker string // the process
	at     time.Time
	done   bool
}

// newWorld makes a world. What is set of the form stays.
func newWorld(t *testing.T, f workerForm) *world {
	t.Helper()
	w := &world{t: t, ledger: t.TempDir()}
	// Effects take a while to be answered, so that processes die in between.
	slow := faultserver.Rule{Fault: "slow", At: "after-effect", Delay: 20 * time.Millisecond, Times: faultserver.Always}
	server, err := faultserver.StartHTTP(faultserver.Script{Dir: w.ledger, Rules: []faultserver.Rule{slow}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	model := httptest.NewServer(http.HandlerFunc(w.model))
	t.Cleanup(model.Close)
	f.Tools, f.Model = server.URL(), model.URL
	if f.Address == "" {
		f.Address = startServer(t)
	}
	if f.Store == "" {
		f.Store = t.TempDir()
	}
	w.form = f
	if w.store, err = f.openStore(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.store.Close() })
	if w.client, err = dial(f.Address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.client.Close)
	open := f.open(w.store, nil)
	if w.engine, err = NewEngine(w.client, w.store, &Options{Open: open}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.engine.Close(context.Background()) })
	return w
}

// model answers the requests of the workers' models.
func (w *world) model(rw http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	w.mu.Lock()
	n, leave, status := len(w.asked), w.leave, w.status
	w.asked = append(w.asked, question{what: string(body), worker: r.Header.Get("Worker"), at: time.Now()})
	w.mu.Unlock()
	if leave != nil {
		if wait := leave(string(body)); wait != nil {
			select {
			case <-wait:
			case <-r.Context().Done():
				return
			}
		}
	}
	w.mu.Lock()
	w.asked[n].done = true
	w.mu.Unlock()
	if status != 0 {
		http.Error(rw, "the model is unwell", status)
	}
}

// questions returns the exchanges so far.
func (w *world) questions() []question {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.asked)
}

// say sends a message that asks for so many calls.
func (w *world) say(conversation, id string, calls int) {
	w.t.Helper()
	message := canister.User{Head: canister.Head{ID: id}, Content: canister.Texts(strconv.Itoa(calls) + " calls, please.")}
	if err := w.engine.Send(w.t.Context(), conversation, message); err != nil {
		w.t.Fatal(err)
	}
}

// history returns the canisters of a conversation.
func (w *world) history(conversation string) []canister.Canister {
	w.t.Helper()
	var canisters []canister.Canister
	for c, err := range w.store.Read(context.Background(), conversation, 0) {
		if err != nil {
			w.t.Fatal(err)
		}
		canisters = append(canisters, c)
	}
	return canisters
}

// until waits until a condition of the log of a conversation holds.
func (w *world) until(conversation string, what string, holds func([]canister.Canister) bool) []canister.Canister {
	w.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		canisters := w.history(conversation)
		if holds(canisters) {
			return canisters
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("after a minute conversation %s has not %s: %v", conversation, what, kinds(canisters))
		}
	}
}

// answered waits until the last turn has its answer.
func (w *world) answered(conversation string) []canister.Canister {
	w.t.Helper()
	return w.until(conversation, "been answered", func(canisters []canister.Canister) bool {
		command, done := converse.Next(canisters, converse.Policy{}, time.Now()).(converse.Done)
		return done && command.Reason == converse.ReasonAnswered
	})
}

func kinds(canisters []canister.Canister) (all []canister.Kind) {
	for _, c := range canisters {
		all = append(all, c.Kind())
	}
	return all
}

// effects counts the effects of each key. One that is not idempotent must not
// happen twice.
func (w *world) effects() map[string]int {
	w.t.Helper()
	ledger, err := faultserver.ReadLedger(w.ledger)
	if err != nil {
		w.t.Fatal(err)
	}
	count := map[string]int{}
	for _, effect := range ledger.Effects() {
		var arguments struct{ Key string }
		_ = json.Unmarshal(effect.Arguments, &arguments)
		if count[arguments.Key]++; count[arguments.Key] > 1 && effect.Tool == "effect" {
			w.t.Errorf("the effect %s happened %d times", arguments.Key, count[arguments.Key])
		}
	}
	return count
}
