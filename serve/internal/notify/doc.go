// Package notify sends messages to people: to chats, pagers, mailboxes and webhooks, by the URLs
// of github.com/nicholas-fedor/shoutrrr. The library reads the URLs and words the messages, and one
// client with bounds sends them. Each message waits for itself, so one that a receiver refuses or
// does not answer delays no other.
package notify
