// Package pulse notices that brokers are silent: connections stand, and nothing comes.
package pulse
