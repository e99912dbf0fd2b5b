import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, test } from 'vitest'

const root = resolve(import.meta.dirname, '..')

/** Odd turns of phrase. `.github/CONTRIBUTING.md` shows the plain forms. */
const odd: readonly RegExp[] = [
  // A sentence starts with its noun.
  /^(Of (?!course)|Who(ever|se)\b|Wh(at|ich)ever\b|That which|One that|What (is|has|was|it|he|they|a|the|nobody|people|hubs)\b)/,
  /\b(of which|of whom|whose|thereof|whereby)\b/i,
  /\b(what|all that) (is|was|has|had|it|they|a|the|nobody|people|others|comes?|falls?|fell|goes|stands?)\b/i,
  /\b(ones?|those|that|anything|something) (that|which|who) /i,
  // Things do not speak.
  /\b(row|header|field|log|page|file|table|line|answer|cloud|hub|database|service|program)s? (says?|said|tells?|told|hears?|heard)\b/i,
  /\b(is|are|was|were|be|been) (told|said|heard|made good|put right|taken up|gone back|given back)\b/i,
  /\b(anew|once more|for ever|somebody|nobody|by itself|in doubt|says so|no other|besides|likewise|meanwhile|hence|thereby)\b/i,
  /\b(he|his|him)\b/,
]
/** Words of a sentence that can be read once. */
const LONGEST = 28

/**
 * Odd phrases and long sentences in 1,000 words, by folder: of comments and Markdown, and `in texts` also of texts that
 * users read. A number may only fall: if your text raises it, rewrite the text.
 */
const levels: Readonly<Record<string, number>> = {
  'README.md': 0.6,
  '.github': 3,
  cloud: 1.4,
  edge: 1.8,
  protocol: 2.8,
  simulator: 0.8,
  test: 2.5,
  'cloud/cli in texts': 2.3,
  'cloud/docs in texts': 0.7,
  'protocol/contract in texts': 3.3,
  'protocol/model in texts': 2.1,
  'edge/local-api in texts': 2.2,
  'simulator/console in texts': 1.6,
}

function* files(path: string): Generator<string> {
  if (statSync(path).isDirectory()) {
    for (const name of readdirSync(path))
      if (!/^(node_modules|\..*)$/.test(name)) yield* files(join(path, name))
  } else if (/\.(tsx?|md)$/.test(path)) yield path
}

const COMMENT = /\/\*\*?([^]*?)\*\/|((?:^[ \t]*\/\/.*\n)+)/gm

/** Paragraphs and list items of Markdown, without code and tables; comments of a program; its texts of six words or more. */
function paragraphs(path: string, withTexts: boolean): string[] {
  const source = readFileSync(path, 'utf8')
  if (path.endsWith('.md'))
    return source
      .replaceAll(/^ *```[^]*?^ *```$|^ *[|#].*$/gm, '\n')
      .split(/\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )/)
      .map((part) => part.replace(/^\s*([-*]|\d+\.) /, ''))
  const comments = [...source.matchAll(COMMENT)].flatMap(([, block, lines]) =>
    (block ?? lines!).replaceAll(/^[ \t]*(\*|\/\/) ?/gm, '').split(/\n\s*\n|\n(?= *- )/),
  )
  if (!withTexts) return comments
  const texts = source.replaceAll(COMMENT, '').matchAll(/(['"`])((?:[^\\\n'"`]|\\.|\n)*)\1/g)
  return [
    ...comments,
    ...[...texts]
      .flatMap(([, , text = '']) => text.split(/\n\s*\n/))
      .filter((text) => wordsOf(text) >= 6 && !/[{};=]/.test(text)),
  ]
}

const sentences = (paragraph: string): string[] =>
  paragraph
    .replaceAll(/`[^`]*`/g, 'X')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll(/\s+/g, ' ')
    .split(/(?<=[.!?:;]) (?=["'(*]*[A-Z])/)
    .map((sentence) => sentence.trim())
    .filter((sentence) => wordsOf(sentence) >= 4)

const wordsOf = (sentence: string): number => sentence.trim().split(/\s+/).length

const flagsOf = (sentence: string): number =>
  odd.filter((pattern) => pattern.test(sentence)).length + Number(wordsOf(sentence) > LONGEST)

test('an odd sentence is found, and a plain one is not', () => {
  expect(
    [
      'Of an order that nobody paid in time, nothing.',
      'Whoever finds a fact says so with a call.',
      'The row says which hub was heard of.',
      'What was paid for and did not drop goes back.',
    ].map(flagsOf),
  ).toEqual(expect.not.arrayContaining([0]))
  expect(
    [
      'Refunds paid units that were not dispensed.',
      'A 304 carries the headers of the 200 that it replaces.',
      'Call X in the transaction that detects the problem.',
    ].map(flagsOf),
  ).toEqual([0, 0, 0])
})

const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0)

test.each(Object.entries(levels))('%s: at most %d odd phrases in 1,000 words', (place, level) => {
  const [folder, texts] = place.split(' in ')
  const found = [...files(join(root, folder!))].flatMap((path) =>
    paragraphs(path, texts !== undefined).flatMap(sentences),
  )
  const flagged = found.filter((sentence) => flagsOf(sentence) > 0)
  const density = (1000 * sum(found.map(flagsOf))) / sum(found.map(wordsOf))
  expect([density > level, density > level ? flagged : []]).toEqual([false, []])
})

const NAME = /\b(?:test|it)(?:\.\w+(?:\((?:[^()]|\([^()]*\))*\))?)*\(\s*(['"`])((?:(?!\1)[^\\]|\\.)+)\1,/g

test('at most one test name of 100 has an odd phrase', () => {
  const names = [...files(join(root, 'test'))].flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(NAME)].map(([, , name = '']) => name.replaceAll(/\\(.)/g, '$1')),
  )
  expect(names.length).toBeGreaterThan(2500)
  const flagged = names.filter((name) => flagsOf(name) > 0)
  expect([flagged.length * 100 > names.length, flagged]).toEqual([false, expect.anything()])
})
