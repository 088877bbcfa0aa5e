// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/config/serve"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/histories"
	"github.com/consort-go/consort/internal/logevent"
	"github.com/consort-go/consort/internal/reload"
	"github.com/consort-go/consort/internal/terminal"
	"go.uber.org/zap"
)

// Reload says how a running gateway gets another configuration.
type Reload struct {
	// Files are the files of the configuration as they were before it was loaded.
	Files *reload.Files
	// Load loads the configuration again, with the flags of the command line. It reads
	// files with read.
	Load func(read func(path string) ([]byte, error)) (*config.Config, error)
	// Assemble makes the assembly of a configuration, to replace an earlier one.
	Assemble func(*config.Config, *config.Assembly) (*config.Assembly, error)
	// Signals receives SIGHUP.
	Signals <-chan os.Signal
}

// The reasons for a reload, in the log.
const (
	bySignal  = "signal"
	byFile    = "file"
	byCommand = "command"
)

// atStart lists the keys, and the tables, that are read only when the process starts.
var atStart = []string{
	"audit", "concurrent_starts", "conversation.identity", "conversation.spill", "history", "log.format", "logins.scope", "logins.store", "public_variables", "trusted",
	"serve.access_log", "serve.converse", "serve.grpc", "serve.grpc_tls", "serve.health", "serve.http", "serve.http_tls", "serve.instructions", "serve.max_bodies", "serve.max_body",
	"serve.max_connections", "serve.max_connections_per_address", "serve.name", "serve.own_names", "serve.page_size", "serve.search", "serve.shutdown_timeout",
	"serve.stateless", "serve.title", "serve.watch",
}

func needsRestart(key string) bool {
	return slices.ContainsFunc(atStart, func(fixed string) bool { return key == fixed || strings.HasPrefix(key, fixed+".") })
}

// beyondStart returns the keys of [serve] that need a part which the process opens only at its start: the
// store for approvals and for budgets, if no [history] is set, and the console for clients that are identified.
func beyondStart(running *config.Config, next *serve.Options) (keys []string) {
	if running.History == nil && len(next.Budgets) > 0 {
		keys = append(keys, "serve.budgets")
	}
	if was := running.Serve; HasConsole && was.HTTP.Reveal() != "" && !identifies(was) && identifies(next) {
		keys = append(keys, "serve.console")
	}
	if running.History == nil && next.Asks() {
		keys = append(keys, "serve.rules")
	}
	return keys
}

// reloader replaces the configuration of a running gateway.
type reloader struct {
	options  *Options
	servers  *servers // nil without clients
	ending   context.Context
	end      func() // ends the process
	terminal bool   // standard input was a terminal at the start
	running  sync.WaitGroup

	mu       sync.Mutex       // held during a reload, and not while its new servers connect
	tried    *reload.Files    // of the last attempt
	active   *reload.Files    // in effect
	assembly *config.Assembly // the newest
	serve    *serve.Options   // of the newest
	offering *offering        // of the newest; nil before the first reload
}

// offering connects the new servers of a reload, and then offers them.
type offering struct {
	stop context.CancelFunc // ends the wait for the connections
	done chan struct{}      // closed when the servers are offered
}

// FollowReloads is like [Run] for a process that serves no clients, such as consort worker:
// it only reloads the configuration, until ctx ends or the function stop is called, which
// waits for the end of a reload. Of the options, Config, Assembly, Location, Reload, Screen
// and Stdin count. hangUp ends the process.
func FollowReloads(ctx context.Context, options Options, hangUp context.CancelFunc) (stop func()) {
	return options.startReloads(ctx, hangUp, nil)
}

// startReloads reloads the configuration when a signal, a change of its files or a request
// of another process asks for it. The returned function stop waits for the end of a reload.
func (o *Options) startReloads(ctx context.Context, hangUp context.CancelFunc, servers *servers) (stop func()) {
	if o.Reload == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &reloader{
		options: o, servers: servers, ending: ctx, end: hangUp, terminal: terminal.IsTerminal(o.Stdin),
		tried: o.Reload.Files, active: o.Reload.Files, assembly: o.Assembly, serve: o.Config.Serve,
	}
	if servers != nil {
		servers.reload = r.answer
	}
	r.running.Go(func() { r.awaitSignals(ctx) })
	closed := r.followFile(ctx)
	return func() {
		cancel()
		r.running.Wait()
		closed()
	}
}

// followFile reloads until ctx ends at changes of the configuration file and the files that
// are imported, if there are any, and at requests of other processes. The function closed waits for the end of these.
func (r *reloader) followFile(ctx context.Context) (closed func()) {
	o, closed := r.options, func() {}
	if len(o.Reload.Files.Paths()) == 0 {
		return closed
	}
	if special := o.Reload.Files.Special(); special != "" {
		o.Screen.Note("%s is not a regular file: it is read only now, and its changes need a restart", special)
		return closed
	}
	if !o.Config.Serve.NoWatch {
		r.running.Go(func() { r.watch(ctx) })
	}
	if o.Location.ConfigFile == "" { // consort reload would not find it
		return closed
	}
	folder, err := histories.RunFolder()
	if err == nil {
		closed, err = reload.Listen(ctx, folder, o.Location.ConfigFile, r.answer)
	}
	if err != nil {
		o.Assembly.Logger.Warn("consort reload will not find this process; SIGHUP works", logevent.ReloadListenFailed, zap.Error(err))
		return func() {}
	}
	return closed
}

// awaitSignals reloads at each SIGHUP. If it comes because the terminal is gone, the
// process ends.
func (r *reloader) awaitSignals(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.options.Reload.Signals:
		}
		if r.terminal && !terminal.IsTerminal(r.options.Stdin) {
			r.end()
			return
		}
		_, offer := r.begin(bySignal, nil)
		r.running.Go(offer)
	}
}

// watch reloads at each change of the files.
func (r *reloader) watch(ctx context.Context) {
	failed := func(err error) {
		r.options.Assembly.Logger.Warn("changes of the configuration file may not be noticed; SIGHUP and consort reload work", logevent.ReloadWatchFailed, zap.Error(err))
	}
	watcher, err := reload.Watch(failed)
	if err != nil {
		failed(err)
		return
	}
	defer watcher.Close()
	for ok := true; ok; ok = watcher.Next(ctx) {
		files := r.options.Reload.Files.Settled(ctx)
		watcher.Set(files.Paths())
		if !files.IsEmpty() {
			_, offer := r.begin(byFile, files) // also at the start, since the file may have changed meanwhile
			r.running.Go(offer)
		}
	}
}

// answer reloads because another process asks for it, and waits for the new servers.
func (r *reloader) answer(context.Context) reload.Outcome {
	outcome, offer := r.begin(byCommand, nil)
	offer()
	return *outcome
}

// begin puts the configuration of the files into effect, except for its new servers: the
// function offer connects these, offers them, and completes the outcome. If files is nil,
// they are read when they no longer change. Changed files are ignored if the last attempt
// had the same.
func (r *reloader) begin(why string, files *reload.Files) (outcome *reload.Outcome, offer func()) {
	if files == nil {
		files = r.options.Reload.Files.Settled(r.ending)
	}
	outcome, offer = &reload.Outcome{Process: os.Getpid()}, func() {}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.ending.Err() != nil:
		outcome.Error = "the process is shutting down"
		return outcome, offer
	case why == byFile && files.Equal(r.tried):
		return outcome, offer
	}
	assembly, cfg, err := r.assemble(files)
	if err != errChanging {
		r.tried = files
	}
	if err != nil {
		outcome.Error = r.assembly.Redact(err.Error())
		if err != errChanging || why != byFile {
			r.assembly.Logger.Error("the configuration was rejected; the one before stays in effect", logevent.ConfigRejected, zap.String("trigger", why), zap.Error(err))
		}
		return outcome, offer
	}
	before := r.assembly
	r.assembly, r.serve = assembly, cfg.Serve
	if r.servers != nil {
		r.servers.config.Store(cfg)
		if names := assembly.Sharing(); cfg.Serve.Converse && !slices.Equal(names, before.Sharing()) {
			r.options.noteSharing(names)
		}
	}
	connectAndOffer := r.apply(before, outcome)
	for _, key := range files.Changed(r.active) {
		if !needsRestart(key) {
			outcome.Keys = append(outcome.Keys, key)
		}
	}
	outcome.NeedsRestart = r.restartKeys(files, cfg)
	r.active = files
	return outcome, func() {
		if err := connectAndOffer(); err != nil {
			outcome.Error = assembly.Redact(err.Error())
			return
		}
		logOutcome(assembly.Logger, why, outcome)
	}
}

// restartKeys returns the keys of a configuration that need a restart: the changed ones that are read
// only at the start, and the ones that need a part which is opened or set up there. A longer
// call_limit is one if this process takes over conversations of other processes: its engine decides
// that by the longest call_limit at its start.
func (r *reloader) restartKeys(files *reload.Files, cfg *config.Config) (keys []string) {
	o := r.options
	console := o.Console != nil
	takesOver := r.servers != nil && cfg.Serve.Converse && o.Engine == ""
	longest := o.Config.Others(console) - time.Minute // negative without others
	for _, key := range files.Changed(o.Reload.Files) {
		if needsRestart(key) || takesOver && longest > 0 && callLimit(cfg, key) > longest {
			keys = append(keys, key)
		}
	}
	if r.servers != nil && !console {
		keys = append(keys, beyondStart(o.Config, cfg.Serve)...)
	}
	return keys
}

// callLimit returns the call_limit of a server by its key; 0 for other keys, and without one.
func callLimit(cfg *config.Config, key string) time.Duration {
	path, ok := strings.CutSuffix(key, ".call_limit")
	_, name, _ := strings.Cut(path, ".") // after mcp or grpc
	if server := cfg.Supervised()[name]; ok && server != nil {
		return server.CallLimit
	}
	return 0
}

// logOutcome logs the outcome of a successful reload.
func logOutcome(logger *zap.Logger, why string, o *reload.Outcome) {
	logger.Info("the configuration was reloaded", logevent.ConfigReloaded, zap.String("trigger", why), zap.Strings("added", o.Added),
		zap.Strings("removed", o.Removed), zap.Strings("changed", o.Changed), zap.Strings("keys", o.Keys), zap.Strings("needs_restart", o.NeedsRestart))
	if len(o.NeedsRestart) > 0 {
		logger.Warn("keys have changed that have no effect, or not all of it, without a restart: restart the process for them", logevent.ConfigRestartNeeded, zap.Strings("needs_restart", o.NeedsRestart))
	}
}

// errChanging says that a configuration is written at this moment. The watcher then reads
// it again.
var errChanging = errors.New("the configuration file is changing; try again")

// errEmpty refuses an empty file: without a [serve] table it would be valid, and each
// server would go.
var errEmpty = errors.New("the configuration file is empty")

// errNoModel refuses a configuration that has no model for conversations any more.
var errNoModel = errors.New("there is no [model] table any more, and conversations need a model")

// errOpen refuses a configuration whose last client was deleted: anyone could call.
var errOpen = errors.New("without token, clients and oidc in [serve], clients would no longer be identified: restart the process for that, or allow it with open = true")

// assemble loads the configuration from the files, which must no longer change, and
// assembles it.
func (r *reloader) assemble(files *reload.Files) (*config.Assembly, *config.Config, error) {
	if len(files.Paths()) == 0 {
		return nil, nil, errors.New("there is no configuration file to read again")
	}
	if special := files.Special(); special != "" {
		return nil, nil, fmt.Errorf("%s is not a regular file and cannot be read a second time: restart the process", special)
	}
	loaded, err := r.options.Reload.Load(files.Text)
	switch {
	case !files.Equal(files.Again()):
		return nil, nil, errChanging
	case err != nil:
		return nil, nil, err
	case files.IsEmpty():
		return nil, nil, errEmpty
	}
	cfg := withRunning(loaded, r.options.Config)
	if cfg.Serve.Converse && cfg.Model == nil {
		return nil, nil, errNoModel
	}
	if err := mayReplace(cfg.Serve, r.serve); err != nil {
		return nil, nil, err
	}
	if err := mayListen(cfg.Serve); err != nil {
		return nil, nil, err
	}
	if r.servers != nil { // a worker does not use the keys for clients
		if err := r.options.haveEffect(cfg, cmp.Or(loaded.Serve, cfg.Serve)); err != nil {
			return nil, nil, err
		}
	}
	assembly, err := r.options.Reload.Assemble(cfg, r.assembly)
	return assembly, cfg, err
}

// mayReplace returns an error if the settings of [serve] must not replace running.
func mayReplace(next, running *serve.Options) error {
	if next.Listens() && identifies(running) && !identifies(next) && !next.Open {
		return errOpen
	}
	return nil
}

// identifies reports whether the settings identify clients.
func identifies(s *serve.Options) bool {
	return s.Token.Reveal() != "" || len(s.Clients) > 0 || s.OIDC != nil
}

// withRunning returns a configuration with the settings of the running one that are read
// only at the start; see atStart.
func withRunning(loaded, running *config.Config) *config.Config {
	cfg, served, from := *loaded, *running.Serve, loaded.Serve
	if from == nil {
		from = &serve.Options{}
	}
	served.Token, served.Clients, served.Open = from.Token, from.Clients, from.Open
	served.Console, served.TraceURL = from.Console, from.TraceURL
	served.OIDC, served.ResourceMetadata = from.OIDC, from.ResourceMetadata
	served.Rules, served.Profiles, served.Budgets = from.Rules, from.Profiles, from.Budgets
	served.Hosts, served.Origins, served.Rate, served.Burst, served.Parallel = from.Hosts, from.Origins, from.Rate, from.Burst, from.Parallel
	cfg.Serve = &served
	cfg.Audit, cfg.History, cfg.Trusted, cfg.Log.JSON = running.Audit, running.History, running.Trusted, running.Log.JSON
	if running.Audit != nil && running.Audit.Log && cfg.Log.Level != config.LevelDebug {
		cfg.Log.Level = config.LevelInfo // of the records, which the log would drop
	}
	cfg.ConcurrentStarts, cfg.PublicVariables = running.ConcurrentStarts, running.PublicVariables
	cfg.Logins.Store, cfg.Logins.Scope = running.Logins.Store, running.Logins.Scope
	cfg.Conversation.Identity, cfg.Conversation.Spill = running.Conversation.Identity, running.Conversation.Spill
	if !served.Converse {
		cfg.Model = nil // so it need not be valid
	}
	return &cfg
}

// apply puts the newest assembly into effect: who may call, and which servers are gone. The
// returned function offer connects the new servers, and offers their tools only after that. A newer reload ends the wait for the connections of offer: then
// the servers that are offered stay, and the newer reload waits for the others. r.mu is
// held for apply, and not for offer.
func (r *reloader) apply(before *config.Assembly, outcome *reload.Outcome) (offer func() error) {
	after := r.assembly
	if r.servers != nil {
		r.servers.settings.Store(r.serve)
		r.servers.assembly.Store(after)
		r.servers.mcp.SetAccess(after.Serve)
		if r.servers.grpc != nil {
			r.servers.grpc.SetAccess(after.ServeGRPC)
		}
	}
	if earlier := r.offering; earlier != nil {
		earlier.stop()
		<-earlier.done
	}
	compare(before.Ensembles, after.Ensembles, outcome)
	offered, current := byName(after.Roster.Ensembles()), byName(after.Ensembles)
	var fresh, staying, meanwhile []*ensemble.Ensemble
	for _, e := range after.Ensembles {
		former := offered[e.Name()]
		if former != nil {
			staying = append(staying, former)
		}
		if former != e {
			fresh = append(fresh, e)
		}
		meanwhile = append(meanwhile, cmp.Or(former, e))
	}
	_ = after.Roster.Replace(staying...) // the second Replace, with all servers, reports the same error
	ctx, stop := context.WithCancel(r.ending)
	done := make(chan struct{})
	r.offering = &offering{stop, done}
	return func() error {
		var closing sync.WaitGroup
		defer closing.Wait()
		for _, e := range before.Ensembles {
			if name := e.Name(); offered[name] != e && current[name] != e {
				closing.Go(func() { _ = e.Close(context.WithoutCancel(ctx)) }) // failures are logged
			}
		}
		defer close(done)
		defer stop()
		outcome.Away = connect(ctx, fresh, after.Redact)
		offers := after.Ensembles
		if ctx.Err() != nil {
			offers = meanwhile
		}
		if err := after.Roster.Replace(offers...); err != nil && !errors.Is(err, ensemble.ErrClosed) {
			return err
		}
		return nil
	}
}

// compare adds the names of the servers that differ to the outcome.
func compare(before, after []*ensemble.Ensemble, outcome *reload.Outcome) {
	old, current := byName(before), byName(after)
	for _, e := range after {
		switch name := e.Name(); old[name] {
		case e:
		case nil:
			outcome.Added = append(outcome.Added, name)
		default:
			outcome.Changed = append(outcome.Changed, name)
		}
	}
	for _, e := range before {
		if current[e.Name()] == nil {
			outcome.Removed = append(outcome.Removed, e.Name())
		}
	}
}

// connect connects servers, and returns the errors of the ones that are away, by name. It
// stops waiting when ctx ends; they still connect.
func connect(ctx context.Context, fresh []*ensemble.Ensemble, redact func(string) string) (away map[string]string) {
	failures := make([]error, len(fresh))
	var connecting sync.WaitGroup
	for i, e := range fresh {
		connecting.Go(func() { failures[i] = e.Connect(ctx) }) // failures are logged
	}
	connecting.Wait()
	away = map[string]string{}
	for i, err := range failures {
		switch {
		case err == nil:
		case ctx.Err() != nil:
			away[fresh[i].Name()] = "it was not connected before the next reload"
		default:
			away[fresh[i].Name()] = redact(err.Error())
		}
	}
	return away
}

func byName(ensembles []*ensemble.Ensemble) map[string]*ensemble.Ensemble {
	named := make(map[string]*ensemble.Ensemble, len(ensembles))
	for _, e := range ensembles {
		named[e.Name()] = e
	}
	return named
}
