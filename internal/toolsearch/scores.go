// SPDX-License-Identifier: Apache-2.0

package toolsearch

import "math"

// postings computes the scores of the terms in the entries.
func (c *counter) postings() [][]posting {
	entries := make([]int, len(c.last)) // that have each term
	for i := range c.counted {
		entries[c.counted[i].term]++
	}
	postings := make([][]posting, len(entries))
	all := make([]posting, len(c.counted))
	rare := make([]float64, len(entries))
	for term, n := range entries {
		postings[term], all = all[:0:n], all[n:]
		rare[term] = math.Log(1 + (float64(len(c.ends)-n)+0.5)/(float64(n)+0.5))
	}
	average, begin := c.averages(), 0
	for entry, end := range c.ends {
		words := c.counted[begin:end]
		name := nameWeight(words, rare)
		for i := range words {
			one := &words[i]
			often := c.frequency(one, entry, &average)
			score := rare[one.term] * often * (saturation + 1) / (often + saturation)
			postings[one.term] = append(postings[one.term], posting{int32(entry), float32(score), inName(one, rare, name)})
		}
		begin = end
	}
	return postings
}

// nameWeight returns how rare the words of a name are, together.
func nameWeight(words []counted, rare []float64) (sum float64) {
	for i := range words {
		if words[i].times[nameField] > 0 && words[i].times[serverField] == 0 {
			sum += rare[words[i].term]
		}
	}
	return sum
}

func inName(one *counted, rare []float64, name float64) float32 {
	if one.times[nameField] == 0 || one.times[serverField] > 0 || name == 0 {
		return 0
	}
	return float32(rare[one.term] / name)
}

// averages returns the average number of words in each field.
func (c *counter) averages() (average [fields]float64) {
	for i := range c.length {
		for field, n := range c.length[i] {
			average[field] += float64(n) / float64(len(c.length))
		}
	}
	return average
}

// frequency returns how often an entry has a term, by the weights of its fields.
func (c *counter) frequency(one *counted, entry int, average *[fields]float64) (often float64) {
	for field, times := range one.times {
		if times > 0 {
			often += weights[field] * float64(times) / (1 - lengths[field] + lengths[field]*float64(c.length[entry][field])/average[field])
		}
	}
	return often
}
