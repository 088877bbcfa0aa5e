// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/consort-go/consort/config"
	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/event"
	"github.com/consort-go/consort/internal/reload"
	"github.com/consort-go/consort/internal/terminal"
	"go.uber.org/zap"
)

// Reload says how a running gateway gets another configuration.
type Reload struct {
	// Files are the files of the configuration as they were before it was loaded.
	Files *reload.Files
	// Load loads the configuration again, with the flags of the command line.
	Load func() (*config.Config, error)
	// Assemble assembles a configuration that replaces an assembly.
	Assemble func(*config.Config, *config.Assembly) (*config.Assembly, error)
	// Folder is the folder of the socket for requests of consort reload.
	Folder string
	// Hangups receives SIGHUP.
	Hangups <-chan os.Signal
}

// The reasons for a reload, in the log.
const (
	bySignal  = "signal"
	byFile    = "file"
	byCommand = "command"
)

// atStart lists the keys, and the tables, that are read only when the process starts.
var atStart = []string{
	"audit", "concurrent_starts", "conversation.identity", "conversation.spill", "history", "log.format", "public_variables", "trusted",
	"serve.access_log", "serve.converse", "serve.grpc", "serve.grpc_tls", "serve.health", "serve.http", "serve.instructions", "serve.max_bodies", "serve.max_body",
	"serve.max_connections", "serve.max_connections_per_address", "serve.name", "serve.own_names", "serve.page_size", "serve.shutdown_timeout",
	"serve.stateless", "serve.title", "serve.watch",
}

func needsRestart(key string) bool {
	return slices.ContainsFunc(atStart, func(fixed string) bool { return key == fixed || strings.HasPrefix(key, fixed+".") })
}

// reloader replaces the configuration of a running gateway.
type reloader struct {
	options  *Options
	servers  *servers
	ending   context.Context
	end      func() // ends the process
	terminal bool   // standard input was a terminal at the start

	mu       sync.Mutex       // held during a reload
	tried    *reload.Files    // of the last attempt
	active   *reload.Files    // in effect
	assembly *config.Assembly // the newest
}

// startReloads reloads the configuration when a signal, a change of its files or a request
// of another process asks for it. The function stop waits for the end of a reload.
func (s *server) startReloads(servers *servers) (stop func()) {
	if s.Reload == nil || s.Location.ConfigFile == "" {
		return func() {}
	}
	r := &reloader{
		options: &s.Options, servers: servers, ending: s.ending, end: s.hangUp, terminal: terminal.IsTerminal(s.Stdin),
		tried: s.Reload.Files, active: s.Reload.Files, assembly: s.Assembly,
	}
	ctx, cancel := context.WithCancel(s.ending)
	var running sync.WaitGroup
	running.Go(func() { r.awaitSignals(ctx) })
	if !s.settings.NoWatch {
		running.Go(func() { r.watch(ctx) })
	}
	closed, err := reload.Listen(ctx, s.Reload.Folder, s.Location.ConfigFile, func(context.Context) reload.Outcome { return r.reload(byCommand, nil) })
	if err != nil {
		closed = func() {}
		s.Assembly.Logger.Warn("consort reload will not find this process; SIGHUP works", event.ReloadListenFailed, zap.Error(err))
	}
	return func() {
		cancel()
		running.Wait()
		closed()
	}
}

// awaitSignals reloads at each SIGHUP. If it comes because the terminal is gone, the
// process ends.
func (r *reloader) awaitSignals(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.options.Reload.Hangups:
		}
		if r.terminal && !terminal.IsTerminal(r.options.Stdin) {
			r.end()
			return
		}
		r.reload(bySignal, nil)
	}
}

// watch reloads at each change of the files.
func (r *reloader) watch(ctx context.Context) {
	failed := func(err error) {
		r.options.Assembly.Logger.Warn("changes of the configuration file may not be noticed; SIGHUP and consort reload work", event.ReloadWatchFailed, zap.Error(err))
	}
	watcher, err := reload.Watch(failed)
	if err != nil {
		failed(err)
		return
	}
	defer watcher.Close()
	for ok := true; ok; ok = watcher.Next(ctx) {
		files := reload.Settled(ctx, r.options.Location.ConfigFile)
		watcher.Set(files.Paths())
		if !files.IsEmpty() {
			r.reload(byFile, files) // also at the start, since the file may have changed meanwhile
		}
	}
}

// reload replaces the configuration by the one in the files; nil means as they are now.
// Other files are ignored if the last attempt had the same.
func (r *reloader) reload(why string, files *reload.Files) reload.Outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	outcome := reload.Outcome{Process: os.Getpid()}
	switch {
	case r.ending.Err() != nil:
		outcome.Error = "the process is shutting down"
		return outcome
	case files == nil:
		files = reload.Read(r.options.Location.ConfigFile)
	case files.Equal(r.tried):
		return outcome
	}
	assembly, err := r.assemble(files)
	if err == errChanging {
		outcome.Error = err.Error()
		return outcome
	}
	r.tried = files
	if err != nil {
		outcome.Error = r.assembly.Redact(err.Error())
		r.assembly.Logger.Error("the configuration was rejected; the one before stays in effect", event.ConfigRejected, zap.String("trigger", why), zap.Error(err))
		return outcome
	}
	before := r.assembly
	r.assembly = assembly
	if err := r.apply(before, &outcome); err != nil {
		outcome.Error = r.assembly.Redact(err.Error())
		return outcome
	}
	for _, key := range files.Changed(r.active) {
		if !needsRestart(key) {
			outcome.Keys = append(outcome.Keys, key)
		}
	}
	for _, key := range files.Changed(r.options.Reload.Files) {
		if needsRestart(key) {
			outcome.NeedsRestart = append(outcome.NeedsRestart, key)
		}
	}
	r.active = files
	r.log(why, &outcome)
	return outcome
}

// log logs the outcome of a successful reload.
func (r *reloader) log(why string, o *reload.Outcome) {
	r.assembly.Logger.Info("the configuration was reloaded", event.ConfigReloaded, zap.String("trigger", why), zap.Strings("added", o.Added),
		zap.Strings("removed", o.Removed), zap.Strings("changed", o.Changed), zap.Strings("keys", o.Keys), zap.Strings("needs_restart", o.NeedsRestart))
	if len(o.NeedsRestart) > 0 {
		r.assembly.Logger.Warn("some keys have changed that are read only at the start: restart the process for them", event.ConfigRestartNeeded, zap.Strings("needs_restart", o.NeedsRestart))
	}
}

// errChanging says that a configuration is written at this moment. The watcher then reads
// it again.
var errChanging = errors.New("the configuration file is changing; try again")

// assemble loads the configuration, which must be the one of the files, and assembles it.
func (r *reloader) assemble(files *reload.Files) (*config.Assembly, error) {
	loaded, err := r.options.Reload.Load()
	if !files.Equal(reload.Read(r.options.Location.ConfigFile)) {
		return nil, errChanging
	}
	if err != nil {
		return nil, err
	}
	cfg := withRunning(loaded, r.options.Config)
	if http := cfg.Serve.HTTP; http.Reveal() != "" {
		if err := cfg.Serve.MayListen(http.Reveal()); err != nil {
			return nil, fmt.Errorf("serving at %s: %w", http, err)
		}
	}
	if grpc := cfg.Serve.GRPC; grpc.Reveal() != "" {
		if err := cfg.Serve.MayListenGRPC(grpc.Reveal()); err != nil {
			return nil, fmt.Errorf("serving at %s: %w", grpc, err)
		}
	}
	return r.options.Reload.Assemble(cfg, r.assembly)
}

// withRunning returns a configuration with the settings of the running one that are read
// only at the start; see atStart.
func withRunning(loaded, running *config.Config) *config.Config {
	cfg, serve, from := *loaded, *running.Serve, loaded.Serve
	if from == nil {
		from = &config.Serve{}
	}
	serve.Token, serve.Clients, serve.Open, serve.ResourceMetadata = from.Token, from.Clients, from.Open, from.ResourceMetadata
	serve.Hosts, serve.Origins, serve.Rate, serve.Burst, serve.Parallel = from.Hosts, from.Origins, from.Rate, from.Burst, from.Parallel
	cfg.Serve = &serve
	cfg.Audit, cfg.History, cfg.Trusted, cfg.Log.JSON = running.Audit, running.History, running.Trusted, running.Log.JSON
	cfg.Conversation.Identity, cfg.Conversation.Spill = running.Conversation.Identity, running.Conversation.Spill
	if !serve.Converse {
		cfg.Model = nil // so it need not be valid
	}
	return &cfg
}

// apply puts the newest assembly into effect: first who may call, then the servers. Each
// new server is connected before calls reach it.
func (r *reloader) apply(before *config.Assembly, outcome *reload.Outcome) error {
	after := r.assembly
	r.servers.mcp.SetAccess(after.Serve)
	if r.servers.grpc != nil {
		r.servers.grpc.SetAccess(after.ServeGRPC)
	}
	old, current := byName(before.Ensembles), byName(after.Ensembles)
	var fresh []*ensemble.Ensemble
	for _, e := range after.Ensembles {
		switch name := e.Name(); {
		case old[name] == nil:
			outcome.Added = append(outcome.Added, name)
		case old[name] != e:
			outcome.Changed = append(outcome.Changed, name)
		default:
			continue
		}
		fresh = append(fresh, e)
	}
	for _, e := range before.Ensembles {
		if current[e.Name()] == nil {
			outcome.Removed = append(outcome.Removed, e.Name())
		}
	}
	failures := make([]error, len(fresh))
	var connecting sync.WaitGroup
	for i, e := range fresh {
		connecting.Go(func() { failures[i] = e.Connect(r.ending) }) // failures are logged
	}
	connecting.Wait()
	for i, err := range failures {
		if err == nil {
			continue
		}
		if outcome.Away == nil {
			outcome.Away = map[string]string{}
		}
		outcome.Away[fresh[i].Name()] = after.Redact(err.Error())
	}
	if err := after.Roster.Replace(after.Ensembles...); err != nil && !errors.Is(err, ensemble.ErrClosed) {
		return err
	}
	return nil
}

func byName(ensembles []*ensemble.Ensemble) map[string]*ensemble.Ensemble {
	named := make(map[string]*ensemble.Ensemble, len(ensembles))
	for _, e := range ensembles {
		named[e.Name()] = e
	}
	return named
}
