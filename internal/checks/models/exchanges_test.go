// SPDX-License-Identifier: Apache-2.0

//go:build !race

package models

// exchanges is how many exchanges a conversation has whose requests only grow.
const exchanges = 1000
