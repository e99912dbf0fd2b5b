/** A place of the documentation, as `search.json` lists it. */
interface Found {
  title: string
  url: string
  /** `Guide`, or the subject of an endpoint. */
  kind: string
  /** Its words in lower case. */
  words: string
}

const SHOWN = 30

/** The places that contain every word of the query; places with the words in their title come first. */
export function matches(all: readonly Found[], query: string): Found[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return []
  const cost = ({ title, words: text }: Found): number => {
    const name = title.toLowerCase()
    if (!words.every((word) => name.includes(word) || text.includes(word))) return Infinity
    // A whole path comes before longer paths.
    return (words.every((word) => name.includes(word)) ? 0 : 1000) + name.length / 100
  }
  return all
    .map((one) => ({ one, at: cost(one) }))
    .filter(({ at }) => at < Infinity)
    .toSorted((a, b) => a.at - b.at)
    .slice(0, SHOWN)
    .map(({ one }) => one)
}

/** Adds the search of guides, endpoints and fields to a page: by its button, or Ctrl+K. `base`: folder of the documentation. */
export function addSearch(base: string): void {
  const button = document.querySelector<HTMLButtonElement>('#search')!
  const dialog = document.createElement('dialog')
  dialog.className = 'search'
  dialog.ariaLabel = 'Search'
  const input = document.createElement('input')
  input.type = 'search'
  input.role = 'combobox'
  input.ariaLabel = 'Search guides, endpoints and fields'
  input.autocomplete = 'off'
  input.setAttribute('aria-controls', 'found')
  input.ariaExpanded = 'true'
  const list = document.createElement('ul')
  list.id = 'found'
  list.role = 'listbox'
  list.ariaLabel = 'Search Results'
  dialog.append(input, list)
  document.body.append(dialog)

  let all: readonly Found[] = []
  let shown: Found[] = []
  let at = 0
  async function open(): Promise<void> {
    dialog.showModal()
    input.select()
    if (all.length > 0) return
    const answer = await fetch(`${base}search.json`)
    all = (await answer.json()) as Found[]
    show()
  }
  function show(): void {
    shown = matches(all, input.value)
    at = 0
    list.replaceChildren(
      ...shown.map(({ title, kind }, index) => {
        const option = document.createElement('li')
        option.role = 'option'
        option.id = `found-${index}`
        const small = document.createElement('small')
        small.textContent = ` · ${kind}`
        option.append(title, small)
        option.addEventListener('click', () => visit(index))
        return option
      }),
    )
    mark()
  }
  function mark(): void {
    for (const [index, option] of [...list.children].entries()) option.ariaSelected = String(index === at)
    const option = list.children[at]
    if (option) input.setAttribute('aria-activedescendant', option.id)
    else input.removeAttribute('aria-activedescendant')
    option?.scrollIntoView({ block: 'nearest' })
  }
  function visit(index: number): void {
    const found = shown[index]
    if (!found) return
    dialog.close()
    location.assign(`${base}${found.url}`)
  }
  input.addEventListener('input', show)
  input.addEventListener('keydown', (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step !== undefined) {
      at = Math.max(0, Math.min(shown.length - 1, at + step))
      mark()
    } else if (event.key === 'Enter') visit(at)
    else return
    event.preventDefault()
  })
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close()
  })
  button.addEventListener('click', () => void open())
  addEventListener('keydown', (event) => {
    if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
    event.preventDefault()
    void open()
  })
}
