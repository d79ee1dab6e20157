"""The document of every page, and the files that Streamlit gives it."""
