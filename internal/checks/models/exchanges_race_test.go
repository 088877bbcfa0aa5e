// SPDX-License-Identifier: Apache-2.0

//go:build race

package models

// exchanges is how many exchanges a conversation has whose requests only grow: fewer under
// the race detector, where each costs five times as much, and later ones more than early ones.
const exchanges = 300
