const marks: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

export const escapeHtml = (text: string): string => text.replaceAll(/[&<>"']/g, (mark) => marks[mark]!)

/** Code and bold words of a line of Markdown. */
const inline = (text: string): string =>
  escapeHtml(text)
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>')

/** HTML of headings, tables, lists and paragraphs: what this service writes itself in Markdown. */
export function htmlOf(markdown: string): string {
  return markdown
    .split(/\n{2,}/)
    .map((block) => {
      const heading = /^(#{2,4}) (.*)$/.exec(block)
      if (heading) return `<h${heading[1]!.length}>${inline(heading[2]!)}</h${heading[1]!.length}>`
      if (block.startsWith('- ')) return listOf(block.split('\n'))
      if (!block.startsWith('|')) return `<p>${inline(block)}</p>`
      const [head = [], , ...rows] = block.split('\n').map(cellsOf)
      const line = (cells: readonly string[], tag: string): string =>
        `<tr>${cells.map((cell) => `<${tag}>${inline(cell)}</${tag}>`).join('')}</tr>`
      const body = rows.map((cells) => line(cells, 'td')).join('')
      return `<table><thead>${line(head, 'th')}</thead><tbody>${body}</tbody></table>`
    })
    .join('\n')
}

/** A list. Inner items are indented by four spaces. */
function listOf(lines: readonly string[]): string {
  const items = lines.map((line) => ({
    isInner: line.startsWith('    '),
    text: inline(line.replace(/^\s*- /, '')),
  }))
  let html = ''
  for (const [index, { isInner, text }] of items.entries()) {
    const wasInner = items[index - 1]?.isInner ?? false
    html += isInner
      ? `${wasInner ? '</li>' : '<ul>'}<li>${text}`
      : `${wasInner ? '</li></ul>' : ''}${index > 0 ? '</li>' : ''}<li>${text}`
  }
  return `<ul>${html}${items.at(-1)?.isInner ? '</li></ul>' : ''}</li></ul>`
}

const cellsOf = (line: string): string[] =>
  line
    .replace(/^\||\|\s*$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'))
