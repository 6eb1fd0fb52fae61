// Package notify sends messages to people: to chats, pagers, mailboxes and webhooks, by the URLs
// of github.com/nicholas-fedor/shoutrrr. Each receiver has its own queue, so one that is down
// delays no other.
package notify
