// SPDX-License-Identifier: Apache-2.0

package command

import (
	"os"
	"strings"

	"github.com/consort-go/consort/internal/otelsetup"
	"github.com/consort-go/consort/internal/terminal"
	"github.com/consort-go/consort/invoker/telemetry"
	"go.uber.org/zap"
)

// startTelemetry starts the telemetry for the parts that are assembled afterwards.
func (p *program) startTelemetry(logger *zap.Logger) (options *telemetry.Options, err error) {
	if !p.needs.telemetry {
		return nil, nil
	}
	p.exports, err = otelsetup.Start(os.Getenv, otelsetup.Options{Trace: p.trace, Scrape: p.needs.metrics, Version: version()}, logger)
	return p.exports.Telemetry(), err
}

// showTrace prints the spans since the last call, if the user wants them.
func (p *program) showTrace() {
	if !p.trace || p.exports == nil {
		return
	}
	spans, more := p.exports.Spans.Take()
	p.screen.Note("%s", strings.TrimSuffix(terminal.SpanTree(spans, more, p.screen.Notes), "\n"))
}
