// SPDX-License-Identifier: Apache-2.0

// Package converse holds conversations with a language model that uses tools.
package converse
