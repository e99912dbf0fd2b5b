import * as files from 'node:fs'
import { randomHex } from '../../../protocol/model/ids.ts'
import { keepSecret, readSecret } from '../../../protocol/model/kept-secret.ts'
import type { Random } from '../../../protocol/model/runtime.ts'

/** The secret text of a file; undefined where there is none, or it is empty. */
export const readKept = (path: string): string | undefined => readSecret(files, path)

/** Is told, in a sentence, that a secret had to be made anew. */
export type Say = (sentence: string) => void

/** Keeps a secret text in a file that only its owner reads, unless there is one already; the text that it then has. */
export const keepFirst = (path: string, text: string, say: Say): string => keepSecret(files, path, text, say)

/** A secret of 256 random bits from a file; makes it if there is none. */
export const keptRandom = (path: string, random: Random, say: Say): string =>
  readKept(path) ?? keepFirst(path, randomHex(random, 32), say)
