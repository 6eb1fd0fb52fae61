// Package check holds a run to the promises of the consumer. It reads what package trace wrote, and
// the topics, and names each record that breaks a rule. It knows nothing of processes and brokers.
package check
