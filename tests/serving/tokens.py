"""The token ids of prompts, as a served model is given them: its own tokenizer and chat template.

Run by the engine's own python, `tokens.py FOLDER`: reads a list of conversations (lists of messages) as
JSON from standard input and prints the list of their token ids.
"""

import json
import sys


def main():
    """Answer what was asked."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
    conversations = json.load(sys.stdin)
    texts = [
        tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        for messages in conversations
    ]
    print(json.dumps([tokenizer.encode(text, add_special_tokens=False) for text in texts]))


if __name__ == "__main__":
    main()
