// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// DecodeLine returns the messages in a line of stdio, and text in it that is not a message, such
// as a banner or a log record that another thread wrote into the same line.
func DecodeLine(line []byte) (messages []jsonrpc.Message, noise []byte) {
	for rest := line; len(rest) > 0; {
		if rest[0] != '{' && rest[0] != '[' {
			return messages, rest
		}
		value, size := rest, len(rest)
		if !json.Valid(rest) { // a line with one value is not copied
			if value, size = firstValue(rest); size == 0 {
				return messages, rest
			}
		} else if msg := Success(rest); msg != nil {
			return append(messages, msg), noise
		}
		found, unread := decodeValue(value)
		if len(unread) > 0 {
			noise = unread
		}
		messages = append(messages, found...)
		rest = Trim(rest[size:])
	}
	return messages, noise
}

// firstValue returns the first of several JSON values, and its size with the white space before
// it; 0 without a value.
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
		if msg := Success(part); msg != nil {
			messages = append(messages, msg)
		} else if msg, err := jsonrpc.DecodeMessage(part); err == nil {
			messages = append(messages, msg)
		} else {
			unread = part
		}
	}
	return messages, unread
}
