// SPDX-License-Identifier: Apache-2.0

// Package ensemble groups invokers that share a name scope and one life.
package ensemble
