/** Breaks a text into lines of at most `width` characters, each indented by `indent`. A longer word has a line of its own. */
export function wrap(text: string, width: number, indent = ''): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/\s+/)) {
    const longer = line === '' ? word : `${line} ${word}`
    if (line !== '' && indent.length + longer.length > width) {
      lines.push(indent + line)
      line = word
    } else line = longer
  }
  return [...lines, indent + line].join('\n')
}
