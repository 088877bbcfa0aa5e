// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"strings"

	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// startWatching starts the telemetry for the parts that are assembled afterwards.
func (p *program) startWatching(logger *zap.Logger) (options *telemetry.Options, err error) {
	if !p.watched {
		return nil, nil
	}
	p.watching, err = watch(os.Getenv, wanted{trace: p.trace, scrape: p.scraped, version: version()}, logger)
	return p.watching.options(), err
}

// showTrace prints the spans since the last call, if the user wants them.
func (p *program) showTrace() {
	if !p.trace || p.watching == nil {
		return
	}
	spans, more := p.watching.spans.take()
	p.screen.Note("%s", strings.TrimSuffix(terminal.SpanTree(spans, more, p.screen.Notes), "\n"))
}
