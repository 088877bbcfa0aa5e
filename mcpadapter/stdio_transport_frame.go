// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"io"

	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
)

// read passes the messages on stdout to Read. It returns the reason why no more messages
// follow.
func (l *stdioLink) read(p *subprocess.Process, stdout io.Reader) error {
	lines := subprocess.NewLineReader(stdout, l.maxMessage)
	for {
		line, err := lines.Next()
		if err != nil {
			return err
		}
		messages, rest := wire.DecodeLine(line)
		if len(rest) > 0 {
			p.Stray(rest)
			if answer := unreadableAnswer(rest); answer != nil {
				messages = append(messages, answer)
			}
		}
		for _, msg := range messages {
			select {
			case l.messages <- msg:
				p.Delivered()
			case <-p.Lost():
				return nil
			}
		}
	}
}
