// An editor for code, by CodeMirror.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { nonce } from "./nonce";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: "var(--code-number)" },
  { tag: [tags.comment], color: "var(--code-comment)", fontStyle: "italic" },
  { tag: [tags.function(tags.variableName), tags.function(tags.propertyName)], color: "var(--code-function)" },
  { tag: [tags.className, tags.typeName, tags.definition(tags.variableName)], color: "var(--code-name)" },
]);

const look = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "transparent", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--muted)", border: "none" },
  ".cm-activeLine": { backgroundColor: "var(--hover)" },
  ".cm-cursor": { borderLeftColor: "var(--accent)" },
  "&.cm-focused .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection) !important" },
  ".cm-content": { caretColor: "var(--accent)", padding: "10px 0" },
});

function language(name: string): Extension {
  if (/^(python|.*\.py)$/.test(name)) return python();
  if (/^(javascript|.*\.(m?[jt]sx?|json))$/.test(name)) return javascript({ typescript: /\.tsx?$/.test(name) });
  return [];
}

interface Options {
  text: string;
  /** A language, or the name of a file. */
  language: string;
  label: string;
  numbered?: boolean;
  readOnly?: boolean;
  onChange?: (text: string) => void;
  onRun?: () => void;
  onSave?: () => void;
}

export function createEditor(parent: HTMLElement, options: Options): EditorView {
  const act = (work: (() => void) | undefined) => () => {
    work?.();
    return work !== undefined;
  };
  return new EditorView({
    parent,
    state: EditorState.create({
      doc: options.text,
      extensions: [
        EditorView.cspNonce.of(nonce),
        options.numbered ? [lineNumbers(), highlightActiveLine()] : [],
        EditorState.readOnly.of(options.readOnly ?? false),
        history(),
        drawSelection(),
        indentOnInput(),
        indentUnit.of("    "),
        bracketMatching(),
        syntaxHighlighting(colours),
        look,
        language(options.language),
        EditorView.contentAttributes.of({ "aria-label": options.label, spellcheck: "false" }),
        EditorView.lineWrapping,
        keymap.of([
          { key: "Mod-Enter", run: act(options.onRun), preventDefault: true },
          { key: "Shift-Enter", run: act(options.onRun) },
          { key: "Mod-s", run: act(options.onSave), preventDefault: true },
          ...defaultKeymap,
          ...historyKeymap,
          indentWithTab,
        ]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged) options.onChange?.(update.state.doc.toString());
        }),
      ],
    }),
  });
}
