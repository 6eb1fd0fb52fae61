// Package admit admits requests within the limits of who sends them, and answers others with a
// problem.
package admit
