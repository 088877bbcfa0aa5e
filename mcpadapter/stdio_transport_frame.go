// SPDX-License-Identifier: Apache-2.0

package mcpadapter

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/consort-go/consort/internal/subprocess"
	"github.com/consort-go/consort/mcpadapter/internal/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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
		messages, rest := decodeLine(line)
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

// decodeLine returns the messages in a line, and text in it that is not a message, such
// as a banner or a log record that another thread wrote into the same line.
func decodeLine(line []byte) (messages []jsonrpc.Message, noise []byte) {
	for rest := line; len(rest) > 0; {
		if !subprocess.LooksLikeMessage(rest) {
			return messages, rest
		}
		value, size := rest, len(rest)
		if !json.Valid(rest) { // the usual line with one value is not copied
			if value, size = firstValue(rest); size == 0 {
				return messages, rest
			}
		} else if msg := wire.Success(rest); msg != nil {
			return append(messages, msg), noise
		}
		found, unread := decodeValue(value)
		if len(unread) > 0 {
			noise = unread
		}
		messages = append(messages, found...)
		rest = wire.Trim(rest[size:])
	}
	return messages, noise
}

// firstValue returns the first of several JSON values, and its size with the white space before
// it; 0 if there is none.
func firstValue(text []byte) (value json.RawMessage, size int) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if decoder.Decode(&value) != nil {
		return nil, 0
	}
	return value, int(decoder.InputOffset())
}

// decodeValue returns the message or the messages of a batch (MCP 2025-03-26, basic §
// Batching; its requests are answered one by one), and the last part that could not be decoded.
func decodeValue(value json.RawMessage) (messages []jsonrpc.Message, unread []byte) {
	parts := []json.RawMessage{value}
	if value[0] == '[' {
		parts = nil
		if json.Unmarshal(value, &parts) != nil || len(parts) == 0 {
			return nil, value
		}
	}
	for _, part := range parts {
		if msg := wire.Success(part); msg != nil {
			messages = append(messages, msg)
		} else if msg, err := jsonrpc.DecodeMessage(part); err == nil {
			messages = append(messages, msg)
		} else {
			unread = part
		}
	}
	return messages, unread
}
