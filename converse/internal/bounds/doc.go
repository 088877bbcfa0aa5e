// SPDX-License-Identifier: Apache-2.0

// Package bounds makes contents and metadata from outside fit for a history: by value,
// with a JSON form, and within a number of bytes.
package bounds
