// SPDX-License-Identifier: Apache-2.0

// Package openaimodel is a [converse.Model] for servers that speak OpenAI's
// Chat Completions: OpenAI itself, and the many that call themselves
// compatible with it.
package openaimodel
