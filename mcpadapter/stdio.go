// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"context"
	"path/filepath"
	"slices"
	"time"

	"github.com/consort-go/consort/ensemble"
	"github.com/consort-go/consort/internal/event"
	"go.uber.org/zap"
)

// CommandConnectTimeout is how long [Command] gives a server to start: the
// first start of one may install its package.
const CommandConnectTimeout = 30 * time.Second

// Command returns the ensemble of an MCP server that runs as a subprocess,
// with the default options: the short form of [ensemble.New] over [Stdio].
func Command(name, command string, args ...string) *ensemble.Ensemble {
	source := Stdio(append([]string{command}, args...), &StdioOptions{ClientOptions: ClientOptions{Server: name}})
	return ensemble.New(name, source, &ensemble.Options{ConnectTimeout: CommandConnectTimeout})
}

// Stdio returns an MCP server that runs as a subprocess and is spoken to over
// its standard streams. command is the program and its arguments; each
// connection starts it afresh. What is wrong with it is the error of Open.
func Stdio(command []string, options *StdioOptions) ensemble.Source {
	var o StdioOptions
	if options != nil {
		o = *options
	}
	name := "subprocess"
	if len(command) > 0 {
		name = filepath.Base(command[0])
	}
	s := &source{options: o.withDefaults(name), pinned: o.Protocol, inOrder: true, spawns: true}
	description := describe(command, o, s.options)
	s.dial = func(ctx context.Context) (link, error) { return description.dial(ctx) }
	return s
}

func describe(argv []string, o StdioOptions, full ClientOptions) command {
	return command{
		name:       full.Server,
		argv:       slices.Clone(argv),
		env:        safeEnv(o.Environment),
		dir:        o.Directory,
		grace:      o.Grace,
		limits:     o.Limits,
		maxMessage: full.MaxMessage,
		stderr: func(line string) {
			full.Logger.Debug("the server writes to stderr", event.StderrRead, zap.String("line", line))
		},
		noise: func(line string) {
			full.Logger.Warn("a line on stdout that is no message", event.StdoutRefused, zap.String("line", line))
		},
	}
}

// dial starts the process. (A nil *process must not become a link.)
func (c command) dial(ctx context.Context) (link, error) {
	p, err := c.start(ctx)
	if err != nil {
		return nil, err
	}
	return p, nil
}
