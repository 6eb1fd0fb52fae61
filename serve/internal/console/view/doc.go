// Package view renders the part of a page that changes once for all who see the same, keeps it
// while nothing changes, and sends it to those who follow the page.
package view
