// Package servecmd has the verb serve, which runs the server.
package servecmd
