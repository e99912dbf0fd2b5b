import type { z } from 'zod'
import type { ErrorBody } from '../contract/errors.ts'
import type { Routes } from '../contract/routes.ts'

/** The types of the interface, all inferred from its table of routes. In the package they stand written out. */

type In<Schema> = Schema extends z.ZodType ? z.input<Schema> : undefined
type Field<R, Name extends string> = R extends Record<Name, infer Schema> ? In<Schema> : undefined

interface Shape<R extends { response: z.ZodType }> {
  params: Field<R, 'params'>
  query: Field<R, 'query'>
  body: Field<R, 'body'>
  /** Whether its body is a form. */
  form: R extends { form: object } ? true : undefined
  answer: z.input<R['response']>
  /** What each message of a live stream is. */
  message: Field<R, 'message'>
}

type Callable<R> = R extends { interface: 'root' } | { produces: 'text/html' | 'application/octet-stream' }
  ? never
  : R

/** Every endpoint by its method and path, as the document has them. */
export type Api = {
  [
    Id in keyof Routes as Callable<Routes[Id]> extends never
      ? never
      : `${Routes[Id]['method']} ${Routes[Id]['path']}`
  ]: Shape<Routes[Id]>
}

export type ErrorCode = ErrorBody['error']['code']
/** What a 422 found wrong. */
export type Problem = Exclude<ErrorBody['detail'], string>[number]
