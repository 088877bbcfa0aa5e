// SPDX-License-Identifier: Apache-2.0

// Package conversetest has what tests of conversations are written with: a
// model that plays a script.
package conversetest
