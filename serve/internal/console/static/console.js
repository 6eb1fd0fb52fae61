// What pages do besides links and forms: they follow what changes, mark it, and obey keys. Without
// this file a page shows the same as of its loading.
(function () {
  'use strict'

  const live = () => document.getElementById('live')
  const runs = () => document.getElementById('runs')
  const status = document.getElementById('status')
  const say = (text) => { if (status.textContent !== text) status.textContent = text }
  // What the server does not confirm any more is dimmed.
  const confirm = (text, lost) => {
    document.body.classList.toggle('lost', Boolean(lost))
    say(text)
  }

  // --- live: a stream of events, or polls where there is none ---

  const pollEvery = 10000
  let source = null
  let poll = 0
  let own = false // a swap of news, not of a filter

  // A page that does not change itself follows the cards of runs at another address.
  const here = () => runs().dataset.stream ? new URL(runs().dataset.stream, location.href).href : location.href
  const seen = () => (live().dataset.seen || '') + '.' + (runs().dataset.seen || '')

  function address () {
    const url = new URL(here())
    url.hash = ''
    url.searchParams.set('seen', seen())
    return url.href
  }

  // What is pressed stays where it is until it is released: a swap would swallow the click.
  let pressed = false
  const waiting = []
  document.addEventListener('pointerdown', () => { pressed = true })
  for (const name of ['pointerup', 'pointercancel']) {
    document.addEventListener(name, () => setTimeout(() => {
      pressed = false
      for (const late of waiting.splice(0)) late()
    }))
  }

  function show (part, html, hash) {
    if (pressed) return void waiting.push(() => show(part, html, hash))
    if (!part || !hash || hash === part.dataset.seen) return
    if (part === live() && !part.dataset.seen) return // it does not change
    const open = Array.from(part.querySelectorAll('details[open][id]'), (d) => d.id)
    const ticked = new Set(Array.from(part.querySelectorAll('.ticks input:checked'), (i) => i.value))
    const height = part.offsetHeight
    own = true // without delays it is done when swap returns
    try {
      window.htmx.swap(part, html, { swapStyle: 'innerHTML', swapDelay: 0, settleDelay: 0 })
    } finally {
      own = false
    }
    part.dataset.seen = hash
    for (const id of open) {
      const d = document.getElementById(id)
      if (d) d.open = true
    }
    for (const i of part.querySelectorAll('.ticks input[type=checkbox]')) i.checked = ticked.has(i.value)
    count()
    // A card that comes moves nothing away from under a pointer. Browsers see to it, but not at a page's top.
    if (part === runs() && window.scrollY === 0) window.scrollBy({ top: part.offsetHeight - height, behavior: 'instant' })
    mark()
  }

  function ask () {
    if (document.hidden) return
    const from = here()
    fetch(from, { headers: { 'X-Poll': '1', 'If-None-Match': '"' + seen() + '"' }, cache: 'no-store' }).then((answer) => {
      if (answer.status === 304) return confirm('Asks for news every 10 s.')
      if (answer.status === 401) return confirm('Your session is over. Load the page again to sign in.', true)
      if (!answer.ok) return confirm('The server answers ' + answer.status + '. The page asks again.', true)
      return answer.text().then((text) => {
        const got = new DOMParser().parseFromString(text, 'text/html')
        if (from !== here()) return
        for (const id of ['live', 'runs']) {
          const part = got.getElementById(id)
          if (part) show(document.getElementById(id), part.innerHTML, part.dataset.seen)
        }
        confirm('Asks for news every 10 s.')
      })
    }).catch(() => confirm('The server does not answer. The page asks again.', true))
  }

  function stop () {
    if (source) source.close()
    source = null
    clearInterval(poll)
    poll = 0
  }

  function follow () {
    stop()
    if (!live() || !runs().dataset.seen) return
    if (!window.EventSource) return fall()
    source = new EventSource(address())
    source.addEventListener('open', () => confirm('Live.'))
    source.addEventListener('live', (event) => show(live(), event.data, event.lastEventId.split('.')[0]))
    source.addEventListener('runs', (event) => show(runs(), event.data, event.lastEventId.split('.')[1]))
    source.addEventListener('error', () => {
      if (source && source.readyState === EventSource.CLOSED) fall() // the server refused
      else confirm('The connection is lost. The page tries again.', true)
    })
  }

  function fall () {
    stop()
    poll = setInterval(ask, pollEvery)
    ask()
  }

  // A page that nobody sees costs nothing.
  document.addEventListener('visibilitychange', () => {
    if (document.hidden) return stop()
    follow()
    look()
  })
  window.addEventListener('pagehide', stop)
  window.addEventListener('pageshow', (event) => { if (event.persisted) follow() })
  // A filter that the server refuses leaves the page as it is, and says why.
  document.body.addEventListener('htmx:responseError', (event) => {
    const words = new DOMParser().parseFromString(event.detail.xhr.responseText, 'text/html').querySelector('#live p')
    say(words ? words.textContent : 'The server answers ' + event.detail.xhr.status + '.')
  })
  // A filter has another address, and a stream of its own.
  document.body.addEventListener('htmx:afterSettle', () => {
    if (own) return
    follow()
    look()
    count()
  })

  // --- what changed since you looked ---

  let looked = new Map()

  function marks () {
    const all = new Map()
    for (const row of live().querySelectorAll('[data-mark]')) {
      const [id, ...rest] = row.dataset.mark.split(' ')
      all.set(id, { row, value: rest.join(' ') })
    }
    return all
  }

  function look () {
    looked = new Map(Array.from(marks(), ([id, m]) => [id, m.value]))
  }

  function mark () {
    for (const [id, m] of marks()) m.row.classList.toggle('changed', looked.get(id) !== m.value)
  }

  // --- how long ago things were ---

  const units = [[172800, 86400, ' d'], [3600, 3600, ' h'], [60, 60, ' min'], [0, 1, ' s']]

  function tell () {
    const now = Date.now()
    for (const time of document.querySelectorAll('#live time[datetime], #runs time[datetime]')) {
      const seconds = Math.round((now - Date.parse(time.dateTime)) / 1000)
      const [, by, unit] = units.find(([from]) => Math.abs(seconds) >= from)
      const span = Math.floor(Math.abs(seconds) / by) + unit
      const text = seconds === 0 ? 'now' : seconds < 0 ? 'in ' + span : span + ' ago'
      if (time.textContent !== text) time.textContent = text
    }
  }

  // --- ticks: the buttons say how many letters they are about ---

  function count () {
    const n = document.querySelectorAll('.ticks input:checked').length
    for (const button of document.querySelectorAll('[data-ticked]')) {
      button.disabled = n === 0
      button.textContent = button.dataset.ticked + (n > 0 ? ' ' + n : '') + '…'
    }
  }
  document.addEventListener('change', (event) => { if (event.target.closest('.ticks')) count() })
  window.addEventListener('pageshow', count)

  // --- commands that can be copied; without the clipboard they are selected ---

  document.body.classList.add('scripted')
  document.addEventListener('click', (event) => {
    const button = event.target.closest('[data-copy]')
    if (!button) return
    const text = button.parentElement.querySelector('pre')
    const choose = () => {
      window.getSelection().selectAllChildren(text)
      say('The command is selected.')
    }
    if (!navigator.clipboard) return choose()
    navigator.clipboard.writeText(text.textContent).then(() => say('Copied.'), choose)
  })

  // --- keys ---

  let before = ''

  function move (by) {
    const rows = Array.from(live().querySelectorAll('[data-row] a.open'))
    if (rows.length === 0) return go(live().querySelector(by > 0 ? 'a[rel=next]' : 'a[rel=prev]'))
    const row = document.activeElement.closest('[data-row]')
    const at = rows.findIndex((a) => row && row.contains(a))
    const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1)]
    next.focus()
  }

  const keys = document.getElementById('keys')
  const help = document.getElementById('help')
  help.hidden = false
  help.addEventListener('click', () => keys.showModal())

  const go = (link) => { if (link) link.click() }

  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return
    if (event.target.closest('input:not([type=checkbox]), select, textarea')) {
      if (event.key === 'Escape') event.target.blur()
      return
    }
    const last = before
    before = event.key
    if (last === 'g') {
      before = ''
      return go(Array.from(document.querySelectorAll('[data-go]')).find((a) => a.dataset.go === event.key))
    }
    switch (event.key) {
      case '/': {
        const field = document.querySelector('#filter input')
        if (!field) return
        field.closest('details').open = true
        field.focus()
        break
      }
      case 'j': move(1); break
      case 'k': move(-1); break
      case 'x': {
        const row = document.activeElement.closest('[data-row]')
        const tick = row && row.querySelector('input[type=checkbox]')
        if (tick) tick.click()
        break
      }
      case 'u': go(document.querySelector('.above a:last-of-type')); break
      case '?': keys.showModal(); break
      default: return
    }
    event.preventDefault()
  })

  look()
  count()
  follow()
  setInterval(tell, 1000)
})()
