import * as files from 'node:fs'
import { randomHex } from '../../../protocol/model/ids.ts'
import { keepSecret, readSecret } from '../../../protocol/model/kept-secret.ts'
import type { Random } from '../../../protocol/model/runtime.ts'

/** The secret text of a file; undefined if the file is absent or empty. */
export const readKept = (path: string): string | undefined => readSecret(files, path)

/** Receives a sentence if a secret had to be created again. */
export type Say = (sentence: string) => void

/** Stores a secret text in a file that only its owner can read, unless the file has one. Returns the file's text. */
export const keepFirst = (path: string, text: string, say: Say): string => keepSecret(files, path, text, say)

/** Reads a secret of 256 random bits from a file; creates it if it is absent. */
export const keptRandom = (path: string, random: Random, say: Say): string =>
  readKept(path) ?? keepFirst(path, randomHex(random, 32), say)
